"""MP3 that does not say how long it is: which decoders then guess by the size of the file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vlmcore_audio.containers import is_mpeg_frame

__all__ = ["measured_mpeg"]

# Of layer III, ISO/IEC 11172-3 and 13818-3, by two and four bits of the head of a frame.
_RATES_HHZ = (441, 480, 320)
_KBPS_1 = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_KBPS_2 = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)

_LARGEST = 0xE0  # of the bits of the head that say how large a frame is

_HEAD = re.compile(rb"\xff[\xe2\xe3\xf2\xf3\xfa\xfb][\x10-\xeb]", re.DOTALL)
_TRIES = 1000  # tags, and heads in what is no frame, that are looked at
_COUNT = re.compile(rb"(?:Xing|Info)(....)(....)|VBRI", re.DOTALL)
_COUNT_ENDS = 48  # bytes from the beginning of a frame, at the latest


def measured_mpeg(data: bytes) -> bytes:
    """
    Let MP3 say how many frames it has: where its first frame does not, or says too few.

    Returns:
        Its whole frames, without tags and what else is around and between them. Of what does not
        begin with two frames whose lengths are known, *data* as it is.
    """
    begin = _after_tags(data)
    first = _frame_bytes(data, begin)
    if not (first and _frame_bytes(data, begin + first)):
        return data
    told = _told(data[begin : begin + min(first, _COUNT_ENDS)])
    frames, runs = 0, [(begin, begin)]
    for start, end in _whole_frames(data, begin if told is None else begin + first):
        frames += 1
        if start == runs[-1][1]:
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((start, end))
    is_measured = told is not None and frames <= told + 1  # some count the first, too
    counting = data[begin : begin + first] if is_measured else _counting(data[begin:], frames)
    return b"".join([counting, *(data[start:end] for start, end in runs)])


def _counting(first: bytes, frames: int) -> bytes:
    """Make a frame of silence as *first* is, which says that so many follow."""
    version, mode = first[1] >> 3 & 3, first[3] >> 6
    is_first, is_mono = version == 3, mode == 3
    sides = {(True, False): 32, (True, True): 17, (False, False): 17, (False, True): 9}
    head = bytes([0xFF, first[1] | 1, _LARGEST | first[2] & 0x0C, first[3]])  # it has no checksum
    frame = head + bytes(sides[is_first, is_mono]) + b"Xing" + (1).to_bytes(4, "big")
    return (frame + frames.to_bytes(4, "big")).ljust(_frame_bytes(head, 0), b"\0")


def _after_tags(data: bytes) -> int:
    """Say where what follows the tags begins."""
    at = 0
    for _ in range(_TRIES):
        if data[at : at + 3] != b"ID3" or at + 10 > len(data):
            break
        size = 0
        for each in data[at + 6 : at + 10]:  # seven bits each
            size = size << 7 | each & 0x7F
        at += 10 + size
    return at


def _told(frame: bytes) -> int | None:
    """Say how many frames there are by the first one, if it is none of them; 0 if it is silent."""
    match = _COUNT.search(frame)
    if match is None:
        return None
    flags, count = match.groups()
    is_told = flags is not None and flags[3] & 1  # no decoder here reads VBRI
    return int.from_bytes(count, "big") if is_told else 0


def _whole_frames(data: bytes, at: int) -> Iterator[tuple[int, int]]:
    """Say where each whole frame begins and ends."""
    tries = 0
    while True:
        size = _frame_bytes(data, at)
        if at + size > len(data):
            return
        if size:
            yield at, at + size
            at += size
            tries -= 1  # a song may be as long as it likes, and anything between its frames
            continue
        while not (size and (at + size == len(data) or _frame_bytes(data, at + size))):
            head = _HEAD.search(data, at + 1)
            tries += 1
            if head is None or tries > _TRIES:
                return
            at = head.start()
            size = _frame_bytes(data, at)


def _frame_bytes(data: bytes, at: int) -> int:
    """Say how long the frame is that begins there; 0 if none does whose length is known."""
    head = data[at : at + 4]
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
