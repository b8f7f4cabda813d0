"""What the tests of music share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from music_cases import KEY, ScriptedMiniMax, routed


@pytest.fixture
def minimax(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedMiniMax]:
    server = ScriptedMiniMax(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate))
    monkeypatch.setenv("MINIMAX_API_KEY", KEY)
    try:
        with routed(server.port):
            yield server
    finally:
        server.close()
