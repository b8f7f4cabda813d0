"""MP3 that does not say how long it is: which decoders then guess by the size of the file."""

from __future__ import annotations

from vlmcore_audio.containers import is_mpeg_frame

__all__ = ["unmeasured_frames"]

_COUNTS = (b"Xing", b"Info", b"VBRI")  # before the number of frames
_COUNT_ENDS = 44  # bytes from the beginning of a frame, at the latest
_TAGS = (b"TAG", b"APE")  # that may follow the last frame

# Of layer III, ISO/IEC 11172-3 and 13818-3, by two and four bits of the head of a frame.
_RATES_HHZ = (441, 480, 320)
_KBPS_1 = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_KBPS_2 = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)


def unmeasured_frames(data: bytes) -> bytes | None:
    """
    Take a last frame that is not whole from MP3 whose first frame does not say how many there are.

    Returns:
        *data* up to its last whole frame; ``None`` if it says how many there are, or is not one
        frame after the other.
    """
    at = _after_tags(data)
    first = data[at : at + _COUNT_ENDS]
    if not is_mpeg_frame(first) or any(name in first for name in _COUNTS):
        return None
    while at < len(data):
        size = _frame_bytes(data[at : at + 4])
        if not size:
            rest = data[at:]
            is_end = rest.startswith(_TAGS) or not rest.strip(b"\0") or len(rest) < 4
            return data[:at] if is_end else None
        if at + size > len(data):
            break
        at += size
    return data[:at]


def _after_tags(data: bytes) -> int:
    """Say where what follows the tags begins."""
    at = 0
    while data[at : at + 3] == b"ID3" and at + 10 <= len(data):
        size = 0
        for each in data[at + 6 : at + 10]:  # seven bits each
            size = size << 7 | each & 0x7F
        at += 10 + size
    return at


def _frame_bytes(head: bytes) -> int:
    """Say how long the frame is that begins so; 0 if none does whose length is known."""
    if len(head) < 4 or not is_mpeg_frame(head):
        return 0
    version, kind, rate = head[1] >> 3 & 3, head[2] >> 4, head[2] >> 2 & 3
    if kind in (0, 15) or rate == 3:
        return 0
    is_first = version == 3
    kbps = (_KBPS_1 if is_first else _KBPS_2)[kind]
    rate_hhz = _RATES_HHZ[rate] / {3: 1, 2: 2, 0: 4}[version]
    samples = 1152 if is_first else 576
    return int(samples / 8 * 10 * kbps / rate_hhz) + (head[2] >> 1 & 1)
