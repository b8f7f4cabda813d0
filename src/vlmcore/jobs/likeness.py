"""How alike pictures look: hashes that nearly agree for nearly the same picture."""

from __future__ import annotations

import attrs
import numpy as np
import numpy.typing as npt

from vlmcore._arrays import UInt8Array
from vlmcore.media.resizing import Resampling, resize

__all__ = ["Alike", "likeness_of"]

_SIDE = 8  # rows, and differences in each
_HASH_BYTES = 8
_MOST_TONES = 12  # levels of 255 between mean colours of what still looks the same
_GREY = np.array([299, 587, 114], dtype=np.int64)  # Rec. 601, as thousandths
_PAIRS, _FOURS, _BYTES, _SUM = (np.uint64(int(f"{byte:02x}" * 8, 16)) for byte in (85, 51, 15, 1))

UInt64Array = npt.NDArray[np.uint64]


def likeness_of(image: UInt8Array) -> bytes:
    """
    Return the difference hash of a picture, 8 bytes, and its mean red, green and blue, 3 bytes.

    A bit says whether the picture becomes brighter from one of 9 x 8 fields to the next on its
    right, after N. Krawetz, "Kind of like that" (2013). The colours tell apart what has no
    structure.

    Args:
        image: Shape ``[H, W, 3]``, RGB.
    """
    small = resize(image, height_px=_SIDE, width_px=_SIDE + 1, resampling=Resampling.AREA)
    grey = small.astype(np.int64) @ _GREY
    bits = np.packbits(grey[:, 1:] > grey[:, :-1])
    tones = np.rint(small.reshape(-1, 3).mean(axis=0)).astype(np.uint8)
    return bytes(bits.tobytes() + tones.tobytes())


@attrs.define
class Alike:
    """
    The pictures that a job has seen, to look for one that is like another.

    It holds 11 bytes and the key of each, and compares with all of them.

    Args:
        most_bits: How many bits of the hashes may differ.
    """

    most_bits: int
    _keys: list[str] = attrs.field(factory=list, init=False)
    _hashes: UInt64Array = attrs.field(factory=lambda: np.zeros(256, np.uint64), init=False)
    _tones: UInt8Array = attrs.field(factory=lambda: np.zeros((256, 3), np.uint8), init=False)

    def add(self, key: str, likeness: bytes) -> None:
        """Remember a picture."""
        count = len(self._keys)
        if count == len(self._hashes):
            self._hashes = np.concatenate([self._hashes, np.zeros_like(self._hashes)])
            self._tones = np.concatenate([self._tones, np.zeros_like(self._tones)])
        self._hashes[count], self._tones[count] = _parts(likeness)
        self._keys.append(key)

    def find(self, key: str, likeness: bytes) -> str | None:
        """Return the key of the first other picture that this one is like; ``None`` if none is."""
        bits, tones = _parts(likeness)
        differing = _ones(self._hashes[: len(self._keys)] ^ bits)
        near = np.flatnonzero(differing <= self.most_bits)
        apart = np.abs(self._tones[near].astype(np.int16) - tones).max(axis=1)
        found = (self._keys[i] for i in near[apart <= _MOST_TONES])
        return next((other for other in found if other != key), None)


def _parts(likeness: bytes) -> tuple[np.uint64, UInt8Array]:
    bits = np.frombuffer(likeness, "<u8", count=1)[0]
    return np.uint64(bits), np.frombuffer(likeness, np.uint8, offset=_HASH_BYTES)


def _ones(words: UInt64Array) -> UInt64Array:
    """Count the bits of words that are 1: of pairs, of fours, of bytes, and all (SWAR)."""
    one, two, four, top = (np.uint64(shift) for shift in (1, 2, 4, 56))
    words = words - ((words >> one) & _PAIRS)
    words = (words & _FOURS) + ((words >> two) & _FOURS)
    words = (words + (words >> four)) & _BYTES
    counts: UInt64Array = (words * _SUM) >> top
    return counts
