"""A hub on the loopback interface that answers as the tests say, over real sockets."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import attrs

__all__ = ["COMMIT", "Hub", "Refusal", "Repository", "serving"]

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@attrs.frozen
class Refusal:
    """An answer that is none: its status, and the code by which hubs name the reason."""

    status: int
    code: str = ""


@attrs.define
class Repository:
    """
    A repository of the hub.

    Attributes:
        files: What is in it.
        refused: Answers in place of the listing, and of each file.
        refused_files: Answers in place of files; under ``""`` for those not named.
    """

    files: Mapping[str, bytes] = attrs.field(factory=dict)
    refused: Refusal | None = None
    refused_files: Mapping[str, Refusal] = attrs.field(factory=dict)

    def refusal(self, name: str) -> Refusal | None:
        return self.refused or self.refused_files.get(name) or self.refused_files.get("")


@attrs.define
class Hub:
    """What the hub has, where it is, and what it was asked for."""

    repositories: dict[str, Repository]
    url: str = ""
    asked: list[str] = attrs.field(factory=list)


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """Serve *hub* on a free port during the block."""

    class Handler(_Handler):
        served = hub

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    served: Hub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.served.asked.append(f"{self.command} {path}")
        parts = path.strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            self._list("/".join(parts[2:4]), parts[4:])
        elif parts[2:3] == ["resolve"]:
            self._file("/".join(parts[:2]), "/".join(parts[4:]))
        else:
            self._refuse(Refusal(404))

    def _list(self, name: str, rest: list[str]) -> None:
        repository = self.served.repositories.get(name)
        if repository is None or repository.refused is not None:
            refusal = Refusal(401, "RepoNotFound") if repository is None else repository.refused
            self._refuse(refusal)
        elif rest[:1] and rest[1] not in ("main", COMMIT):
            self._refuse(Refusal(404, "RevisionNotFound"))
        elif rest[:1] == ["tree"]:
            self._json(
                [
                    {"type": "file", "path": path, "size": len(content), "oid": _etag(content)}
                    for path, content in repository.files.items()
                ]
            )
        else:
            siblings = [{"rfilename": path} for path in repository.files]
            self._json({"id": name, "sha": COMMIT, "siblings": siblings, "tags": []})

    def _file(self, name: str, path: str) -> None:
        repository = self.served.repositories.get(name)
        if repository is None or path not in repository.files:
            self._refuse(Refusal(404, "EntryNotFound"))
        elif (refusal := repository.refusal(path)) is not None:
            self._refuse(refusal)
        else:
            content = repository.files[path]
            headers = {"ETag": f'"{_etag(content)}"', "X-Repo-Commit": COMMIT}
            self._answer(200, content, headers)

    def _json(self, value: Any) -> None:
        self._answer(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _refuse(self, refusal: Refusal | None) -> None:
        assert refusal is not None
        headers = {"X-Error-Code": refusal.code} if refusal.code else {}
        self._answer(refusal.status, b'{"error": "refused"}', headers)

    def _answer(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _etag(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()
