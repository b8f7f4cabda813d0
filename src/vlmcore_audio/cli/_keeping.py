"""Music that was paid for: it is written where it should be, or elsewhere, or its address is."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex

from vlmcore._whole_files import write_whole
from vlmcore.cli.commands import ExitCode, Terminal
from vlmcore.errors import ContractError, MusicDownloadError, VlmcoreError
from vlmcore_audio.clips import MusicClip
from vlmcore_audio.containers import Container

__all__ = ["keep", "keep_address"]


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


def keep_address(error: MusicDownloadError, output: str, terminal: Terminal) -> ExitCode:
    """Write where music lies that did not come, for its owner only, and say where that is."""
    terminal.complain(f"vlmcore: {error}")
    address = error.url.encode("utf-8", "backslashreplace") + b"\n"
    for folder in _folders(Path(output).parent):
        place = folder / f"vlmcore-music-{token_hex(4)}.url.txt"
        try:
            with open(place, "xb", opener=_for_its_owner) as file:
                file.write(address)
        except OSError:
            with contextlib.suppress(OSError):
                place.unlink()
            continue
        terminal.complain(f"vlmcore: its address is in {place}; who has it can fetch the music")
        return ExitCode.INCOMPLETE
    terminal.complain("vlmcore: its address cannot be written anywhere: it is lost")
    return ExitCode.INCOMPLETE


def _for_its_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


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
