"""Music that was paid for, and where it is written: if not where it should be, then elsewhere."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex

from vlmcore._whole_files import write_whole
from vlmcore.cli.commands import ExitCode, Terminal
from vlmcore.errors import ContractError, VlmcoreError
from vlmcore_audio.clips import MusicClip
from vlmcore_audio.containers import Container

__all__ = ["keep"]


def keep(clip: MusicClip, output: str, terminal: Terminal) -> ExitCode:
    """Write a clip to *output*, or as it came to another folder, and say where it is."""
    try:
        clip.save(output)
    except Exception as error:  # noqa: BLE001 - whatever it is, the music is paid for
        place = _kept_elsewhere(clip, Path(output).parent)
        said = str(error) if isinstance(error, VlmcoreError) else f"{output}: {error!r}"
        terminal.complain(f"vlmcore: {said}")
        terminal.complain(f"vlmcore: the music is in {place}" if place else _LOST)
        return ExitCode.INCOMPLETE
    try:
        terminal.line(f"{output}: {clip.duration_s:.1f} s, {clip.sample_rate_hz} Hz")
    except VlmcoreError as error:
        terminal.complain(f"vlmcore: {output} is written, as it came; {error}")
        return ExitCode.INCOMPLETE
    return ExitCode.DONE


_LOST = "vlmcore: it cannot be written anywhere else either: it is lost"


def _kept_elsewhere(clip: MusicClip, beside: Path) -> Path | None:
    suffix = ".mp3" if clip.container is Container.MP3 else ".wav"
    _, data = clip.playable
    for folder in _folders(beside):
        place = folder / f"vlmcore-music-{token_hex(4)}{suffix}"
        with contextlib.suppress(ContractError):
            write_whole(str(place), data)
            return place
    return None


def _folders(beside: Path) -> Iterator[Path]:
    yield beside
    with contextlib.suppress(OSError):  # nor can anything be written to one of them
        yield Path(tempfile.gettempdir())
    with contextlib.suppress(RuntimeError):  # there is none
        yield Path.home()
