"""Sound between nodes: ComfyUI's AUDIO, and the waveforms of older graphs with a rate beside."""

from __future__ import annotations

from pathlib import Path
from secrets import token_hex
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from vlmcore._arguments import shown
from vlmcore._optional import optional_dependency
from vlmcore.errors import ContractError, MediaError
from vlmcore.media.arrays import is_tensor, values_of_tensor
from vlmcore_audio.clips import MusicClip
from vlmcore_audio.containers import Container
from vlmcore_comfy.numbered_files import claim_file

__all__ = ["Sound", "audio_of", "save_sound", "sound_from", "temporary_sound"]


@attrs.frozen(eq=False)
class Sound:
    """
    Sound of one or two channels.

    Attributes:
        samples: float32, shape ``[samples, channels]``, -1 to 1.
        rate_hz: Samples a second.
    """

    samples: npt.NDArray[np.float32]
    rate_hz: int

    def clip(self) -> MusicClip:
        """Make a clip of 16 bits of it; what was 16 bits before is what it was."""
        pcm = np.clip(np.rint(self.samples * 0x8000), -0x8000, 0x7FFF).astype("<i2")
        return MusicClip(
            encoded=pcm.tobytes(),
            container=Container.PCM,
            pcm_sample_rate_hz=self.rate_hz,
            pcm_channels=self.samples.shape[1],
        )


def sound_from(name: str, waveform: Any, rate_hz: int | None = None) -> Sound:
    """
    Take sound as nodes give it.

    Args:
        name: The input that it came through, for errors.
        waveform: ComfyUI's AUDIO, whose rate is its own; or an array or tensor ``[T]``, ``[C, T]``
            or ``[1, C, T]``, floats of -1 to 1 or whole numbers of 16 bits.
        rate_hz: Samples a second, where the waveform does not say.

    Raises:
        ContractError: If it is no sound, is empty, has values that are no numbers, more than two
            channels, or more than one sound.
    """
    if isinstance(waveform, dict):
        rate_hz = waveform.get("sample_rate")
        waveform = waveform.get("waveform")
    if not hasattr(waveform, "shape"):
        raise ContractError(name, f"got {shown(waveform)}, expected AUDIO or a waveform")
    values = _values(name, waveform)
    if values.ndim == 3 and len(values) > 1:
        raise ContractError(name, f"got {len(values)} sounds, expected one")
    values = values[0] if values.ndim == 3 else values
    values = values[np.newaxis] if values.ndim == 1 else values
    if values.ndim != 2 or 0 in values.shape:
        raise ContractError(
            name, f"got the shape {list(waveform.shape)}, expected [T], [C, T] or [1, C, T]"
        )
    if values.shape[0] > 2:
        raise ContractError(name, f"got {values.shape[0]} channels, expected 1 or 2")
    if values.dtype.kind not in "fi" or (values.dtype.kind == "i" and values.itemsize != 2):
        raise ContractError(name, f"got {values.dtype}, expected floats, or int16")
    scaled = values.astype(np.float32) / (0x8000 if values.dtype.kind == "i" else 1)
    if not np.isfinite(scaled).all():
        raise ContractError(name, "has values that are NaN or infinite, expected none")
    if type(rate_hz) is not int or rate_hz < 1:
        raise ContractError("sample_rate", f"got {shown(rate_hz)}, expected samples a second")
    return Sound(np.ascontiguousarray(scaled.T), rate_hz)


def _values(name: str, waveform: Any) -> npt.NDArray[Any]:
    if not is_tensor(waveform):
        return np.asarray(waveform)
    try:
        return values_of_tensor(waveform)
    except MediaError as error:
        raise ContractError(name, error.problem) from None


def audio_of(clip: MusicClip) -> dict[str, Any]:
    """
    Make ComfyUI's AUDIO of a clip.

    Raises:
        MediaError: If it cannot be decoded.
        MissingDependencyError: If torch or soundfile is not installed.
    """
    with optional_dependency("local", "torch"):
        from vlmcore_comfy._torch import waveform_tensor  # noqa: PLC0415 - the door
    return {"waveform": waveform_tensor(clip.waveform), "sample_rate": clip.sample_rate_hz}


def save_sound(sound: Sound, folder: Path, name: str, extension: str) -> Path:
    """
    Write sound into a folder, under a name that nothing has yet: ``audio_00001.wav``.

    Args:
        sound: The sound.
        folder: The folder; it is made where it is not there.
        name: What the file is called, without a folder.
        extension: ``"wav"`` or ``"flac"``.

    Raises:
        ContractError: If the name leads elsewhere, or the file cannot be written.
        MissingDependencyError: If soundfile is needed, and not installed.
    """
    path = claim_file(folder, name, extension, field="filename")
    try:
        return sound.clip().save(path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def temporary_sound(sound: Sound, folder: Path) -> Path:
    """Write sound that is played once, as WAV under a name of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    return sound.clip().save(folder / f"vlmcore_{token_hex(8)}.wav")
