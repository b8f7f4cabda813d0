"""How alike pictures look: hashes that nearly agree for nearly the same picture."""

from __future__ import annotations

import attrs
import numpy as np

from vlmcore._arrays import UInt8Array
from vlmcore.media.resizing import Resampling, resize

__all__ = ["Alike", "likeness_of"]

_SIDE = 8  # rows, and differences in each
_HASH_BYTES = 8
_MOST_TONES = 12  # levels of 255 between mean colours of what still looks the same
_GREY = np.array([299, 587, 114], dtype=np.int64)  # Rec. 601, as thousandths
_ONES = np.array([n.bit_count() for n in range(256)], dtype=np.uint8)


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

    It holds 11 bytes and the key of each, and compares with all: a tenth of a millisecond for
    100,000.

    Args:
        most_bits: How many bits of the hashes may differ.
    """

    most_bits: int
    _keys: list[str] = attrs.field(factory=list, init=False)
    _seen: UInt8Array = attrs.field(
        factory=lambda: np.zeros((256, _HASH_BYTES + 3), np.uint8), init=False
    )

    def add(self, key: str, likeness: bytes) -> None:
        """Remember a picture."""
        if len(self._keys) == len(self._seen):
            self._seen = np.concatenate([self._seen, np.zeros_like(self._seen)])
        self._seen[len(self._keys)] = np.frombuffer(likeness, np.uint8)
        self._keys.append(key)

    def find(self, key: str, likeness: bytes) -> str | None:
        """Return the key of the first other picture that this one is like; ``None`` if none is."""
        seen = self._seen[: len(self._keys)]
        one = np.frombuffer(likeness, np.uint8)
        bits = _ONES[seen[:, :_HASH_BYTES] ^ one[:_HASH_BYTES]].sum(axis=1, dtype=np.int64)
        tones = np.abs(seen[:, _HASH_BYTES:].astype(np.int16) - one[_HASH_BYTES:]).max(axis=1)
        for i in np.flatnonzero((bits <= self.most_bits) & (tones <= _MOST_TONES)):
            if self._keys[i] != key:
                return self._keys[i]
        return None
