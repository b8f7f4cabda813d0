"""What the tests of music share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from music_cases import ScriptedMiniMax, scripted_minimax


@pytest.fixture
def minimax(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedMiniMax]:
    with scripted_minimax(tmp_path, monkeypatch) as server:
        yield server
