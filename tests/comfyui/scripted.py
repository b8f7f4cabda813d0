"""A ComfyUI that says what a test wants, over real sockets: its HTTP and its WebSocket."""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

PROMPT_ID = "4c6f2c8e-0000-4000-8000-000000000001"
HANG_UP = "hang up"
WAIT = "wait"


def message(kind: str, **data: Any) -> str:
    """Write a message about the run."""
    return json.dumps({"type": kind, "data": {"prompt_id": PROMPT_ID, **data}})


def text_of(node: str, text: str) -> bytes:
    """Write the text so far of a node, as ComfyUI does."""
    name = node.encode()
    return struct.pack(">II", 3, len(name)) + name + text.encode()


class ScriptedComfyUI:
    """
    Tells messages when a graph is queued; `HANG_UP` and `WAIT` among them are what they say.

    Attributes:
        url: Where it listens.
        asked: What was asked of it: the path, and the body.
    """

    def __init__(
        self, *messages: Any, refusal: Any = None, files: dict[str, bytes] | None = None
    ) -> None:
        self.asked: list[tuple[str, Any]] = []
        self._messages = messages
        self._refusal = refusal
        self._files = files or {}
        self._queued = asyncio.Event()
        app = Starlette(
            routes=[
                WebSocketRoute("/ws", self._listen),
                Route("/view", self._view),
                Route("/{rest:path}", self._post, methods=["POST"]),
            ]
        )
        self._server = uvicorn.Server(
            uvicorn.Config(
                app, host="127.0.0.1", port=0, log_level="critical", ws="websockets-sansio"
            )
        )
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"

    def close(self) -> None:
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(10)

    async def _post(self, request: Request) -> Response:
        body = await request.json()
        self.asked.append((request.url.path, body))
        if request.url.path != "/prompt":
            return Response()
        if self._refusal is not None:
            return JSONResponse(self._refusal, status_code=400)
        self._queued.set()
        return JSONResponse({"prompt_id": PROMPT_ID, "number": 1, "node_errors": {}})

    async def _view(self, request: Request) -> Response:
        data = self._files.get(request.query_params["filename"])
        return Response(status_code=404) if data is None else Response(data)

    async def _listen(self, socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_text(json.dumps({"type": "status", "data": {"status": {}}}))
        await self._queued.wait()
        for said in self._messages:
            if said == HANG_UP:
                await socket.close()
                return
            if said == WAIT:
                await asyncio.sleep(60)
            elif isinstance(said, bytes):
                await socket.send_bytes(said)
            else:
                await socket.send_text(said)
        await asyncio.sleep(5)


@contextlib.contextmanager
def scripted(*messages: Any, **said: Any) -> Iterator[ScriptedComfyUI]:
    """Listen, and stop at the end."""
    server = ScriptedComfyUI(*messages, **said)
    try:
        yield server
    finally:
        server.close()
