"""The messages of a ComfyUI to its page, over a WebSocket."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from vlmcore._closing import Closing
from vlmcore.contracts.json_text import read_json
from vlmcore.endpoint import Endpoint
from vlmcore.errors import ContractError, GraphServerError
from vlmcore.limits import GraphLimits

__all__ = ["Listener"]


class Listener(Closing):
    """
    Hears what ComfyUI tells one of its pages.

    Args:
        endpoint: Where ComfyUI listens.
        client_id: Which page this is.
        timeout_s: How long it may take to answer.

    Raises:
        GraphServerError: If it cannot be reached.
    """

    def __init__(self, endpoint: Endpoint, client_id: str, *, timeout_s: float) -> None:
        self._url = endpoint.url
        scheme = "wss" if endpoint.scheme == "https" else "ws"
        address = endpoint.url.partition("://")[2].rstrip("/")
        self._leaving = ExitStack()
        try:
            self._connection = self._leaving.enter_context(
                connect(
                    f"{scheme}://{address}/ws?clientId={client_id}",
                    proxy=None,
                    compression=None,
                    max_size=GraphLimits().max_message_bytes,
                    open_timeout=timeout_s,
                    ping_timeout=None,  # a graph may keep all of Python busy for long
                    close_timeout=1,
                )
            )
        except ConnectionRefusedError:
            raise GraphServerError(
                self._url, "nothing listens there; is ComfyUI running?"
            ) from None
        except (OSError, WebSocketException) as error:
            raise GraphServerError(
                self._url, f"is no ComfyUI that can be listened to: {error}"
            ) from None

    def close(self) -> None:
        """Hang up."""
        self._leaving.close()

    def messages(self) -> Iterator[dict[str, Any] | bytes]:
        """
        Give each message: an object, or bytes.

        Raises:
            GraphServerError: When ComfyUI hangs up; there is no other end.
        """
        while True:
            try:
                message = self._connection.recv()
            except (OSError, WebSocketException) as error:
                raise GraphServerError(
                    self._url, f"hung up before the graph had run to its end: {error}"
                ) from None
            if isinstance(message, bytes):
                yield message
                continue
            try:
                value = read_json(message)
            except ContractError:
                continue  # what ComfyUI tells in other words is not about this run
            if isinstance(value, dict):
                yield value
