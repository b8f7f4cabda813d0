"""Which container a file of video is, told by its first bytes; those on the list are opened."""

from __future__ import annotations

__all__ = ["HEAD_BYTES", "container_of"]

HEAD_BYTES = 400
_MOV_ATOMS = (b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot")
_PICTURES = (b"avif", b"avis", b"heic", b"heix", b"heim", b"heis", b"mif1", b"msf1", b"miaf")
_STARTS = {
    b"\x1aE\xdf\xa3": "matroska",
    b"\x30\x26\xb2\x75\x8e\x66\xcf\x11": "asf",
}
_TS_PACKETS = ((188, 0), (192, 4))  # bytes of a packet, and before its first sync byte
_TS_SYNC = 0x47


def container_of(head: bytes) -> str | None:
    """
    Name the container that a file begins as, in FFmpeg's words; ``None`` if it is none of ours.

    What names other files, as a playlist or a list of files to be joined, is none.

    Args:
        head: The first `HEAD_BYTES` of the file, or all of it.

    Example:
        >>> container_of(b"#EXTM3U") is None
        True
    """
    if head[4:8] == b"ftyp" and head[8:12] in _PICTURES:
        return None
    if head[4:8] in _MOV_ATOMS:
        return "mov"
    if head[:4] == b"RIFF" and head[8:12] == b"AVI ":
        return "avi"
    for start, container in _STARTS.items():
        if head.startswith(start):
            return container
    for size, offset in _TS_PACKETS:
        syncs = head[offset : offset + size + 1 : size]
        if len(syncs) == 2 and set(syncs) == {_TS_SYNC}:
            return "mpegts"
    return None
