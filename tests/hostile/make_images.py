"""Hostile image files, small ones that claim or unpack to much; each built from the format up."""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

from PIL import Image

MIB = 1 << 20


def png(
    *chunks: tuple[bytes, bytes], width: int = 8, height: int = 8, depth: int = 8, colours: int = 0
) -> bytes:
    """Build a PNG with *chunks* between its header and its pixels, which are black unless given."""
    rows = zlib.compress(b"\0" * 9 * 8)
    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colours, 0, 0, 0)), *chunks]
    parts += [(b"IDAT", rows)] * all(kind != b"IDAT" for kind, _ in chunks) + [(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )


def jpeg(*, progressive: bool = False) -> bytes:
    """Build an ordinary JPEG of 16 x 16 pixels."""
    file = io.BytesIO()
    Image.linear_gradient("L").resize((16, 16)).save(file, "JPEG", progressive=progressive)
    return file.getvalue()


def segment(marker: int, payload: bytes) -> bytes:
    """Build a segment of a JPEG."""
    return struct.pack(">BBH", 0xFF, marker, len(payload) + 2) + payload


def resized_jpeg(width: int, height: int) -> bytes:
    """Build a JPEG whose frame header claims another size."""
    data = jpeg()
    at = data.index(b"\xff\xc0") + 5
    return data[:at] + struct.pack(">HH", height, width) + data[at + 4 :]


def many_scans(scans: int) -> bytes:
    """Build a progressive JPEG that refines its first pass again and again."""
    data = jpeg(progressive=True)
    last = data.rindex(b"\xff\xda")
    return data[:last] + data[last:-2] * scans + b"\xff\xd9"


def tiff(*tags: tuple[int, int, int, int], tail: bytes = b"\0" * 64, first: int = 8) -> bytes:
    """Build a TIFF, little-endian, of tags (tag, type, count, value or place)."""
    directory = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", *tag) for tag in tags)
    return b"II*\0" + struct.pack("<I", first) + directory + struct.pack("<I", 0) + tail


def grey_tiff(**changes: tuple[int, int, int, int]) -> bytes:
    """Build an uncompressed grey TIFF of 8 x 8 pixels, with some tags replaced or added."""
    tags = {
        "width": (0x100, 4, 1, 8),
        "height": (0x101, 4, 1, 8),
        "bits": (0x102, 3, 1, 8),
        "compression": (0x103, 3, 1, 1),
        "photometric": (0x106, 3, 1, 1),
        "offsets": (0x111, 4, 1, 8),
        "samples": (0x115, 3, 1, 1),
        "rows": (0x116, 4, 1, 8),
        "counts": (0x117, 4, 1, 64),
    }
    return tiff(*(tags | changes).values())


def overlapping_tags(tags: int, size: int) -> bytes:
    """Build tags that all point at the same bytes: each is honest, together they are not."""
    own = tuple((0xC000 + index, 7, size, 16) for index in range(tags))
    return tiff((0x100, 4, 1, 8), (0x101, 4, 1, 8), *own, tail=b"\0" * size)


def gif(width: int, height: int, *frames: tuple[int, int, int, int]) -> bytes:
    """Build a GIF with a canvas and frames of (left, top, width, height)."""
    colours = b"\0\0\0\xff\xff\xff"
    pixels = b"\x02\x06\x84\x8f\xa9\xcb\xed\x5d\0"
    pictures = b"".join(b"," + struct.pack("<HHHHB", *frame, 0) + pixels for frame in frames)
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + colours + pictures + b";"


def webp(kind: bytes, payload: bytes) -> bytes:
    """Build a WebP of one chunk."""
    chunk = kind + struct.pack("<I", len(payload)) + payload
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk


def bmp(width: int, height: int) -> bytes:
    """Build the header of a BMP."""
    header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54, 0, 0, 54) + header


def box(kind: bytes, *parts: bytes) -> bytes:
    """Build a box of an AVIF."""
    content = b"".join(parts)
    return struct.pack(">I", 8 + len(content)) + kind + content


def bits(*fields: tuple[int, int]) -> bytes:
    """Pack (value, number of bits), and fill up to whole bytes."""
    text = "".join(f"{value:0{count}b}" for value, count in fields)
    text += "0" * (-len(text) % 8)
    return int(text, 2).to_bytes(len(text) // 8, "big")


def single_picture(width: int, height: int) -> bytes:
    """Build the head of an AV1 stream of one picture, as AVIF has it."""
    head = bits((0, 3), (1, 1), (1, 1), (8, 5), (15, 4), (15, 4), (width - 1, 16), (height - 1, 16))
    return bytes([0x12, 0, 0x0A, len(head) + 8]) + head + bytes(8)


def video(width_bits: int, height_bits: int, *, timing: bool = False) -> bytes:
    """Build the head of an AV1 stream of many pictures, each of which may name its own size."""
    clock = [(1, 1), (1, 32), (25, 32), (1, 1), (1, 1), (1, 1), (31, 5), (1, 32), (4, 5), (4, 5)]
    fields = [(0, 3), (0, 1), (0, 1), *(clock if timing else [(0, 1)]), (1, 1), (0, 5)]
    fields += [(0, 12), (9, 5), (0, 1), *([(1, 1), (0, 32), (0, 32), (0, 1)] if timing else [])]
    fields += [(1, 1), (3, 4), (width_bits - 1, 4), (height_bits - 1, 4), (15, width_bits)]
    head = bits(*fields, (15, height_bits))
    return bytes([0x0A, len(head)]) + head


def avif(stream: bytes, *, width: int = 16, height: int = 16, items: int = 1) -> bytes:
    """Build an AVIF whose items all lie over the same stream."""
    keys = range(1, items + 1)
    start = 0

    def whole() -> bytes:
        full = bytes(4)
        places = b"".join(struct.pack(">HHHII", key, 0, 1, start, len(stream)) for key in keys)
        kinds = [box(b"infe", b"\2\0\0\0", struct.pack(">HH", key, 0), b"av01\0") for key in keys]
        use = b"".join(struct.pack(">HBB", key, 1, 1) for key in keys)
        size = box(b"ispe", full, struct.pack(">II", width, height))
        meta = box(
            b"meta",
            full,
            box(b"hdlr", full, bytes(4), b"pict", bytes(13)),
            box(b"pitm", full, b"\0\1"),
            box(b"iloc", full, b"\x44\0", struct.pack(">H", items), places),
            box(b"iinf", full, struct.pack(">H", items), *kinds),
            box(b"iprp", box(b"ipco", size), box(b"ipma", full, struct.pack(">I", items), use)),
        )
        return box(b"ftyp", b"avif", bytes(4), b"avifmif1miaf") + meta + box(b"mdat", stream)

    start = len(whole()) - len(stream)
    return whole()


def zeros(size: int) -> bytes:
    """Compress *size* zeros, a whole number of MiB, without compressing each of them."""
    press = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = press.compress(bytes(MIB)) + press.flush(zlib.Z_FULL_FLUSH)
    checksum = struct.pack(">HH", size % 65521, 1)
    return b"\x78\xda" + block * (size // MIB) + b"\x03\0" + checksum


def exif_bomb(size: int) -> bytes:
    """Build EXIF whose tags all point at the same bytes."""
    return overlapping_tags(min(16_000, size // 24), size // 2)


# Refused, each by an error of ours.
REFUSED: dict[str, Callable[[], bytes]] = {
    "png-of-10-gigapixels": lambda: png(width=100_000, height=100_000),
    "png-of-a-row-of-2-gigapixels": lambda: png(width=(1 << 31) - 1, height=1),
    "png-of-no-pixels": lambda: png(width=0),
    "png-of-a-million-chunks": lambda: png(*[(b"aaAa", b"")] * MIB),
    "jpeg-of-4-gigapixels": lambda: resized_jpeg(65_500, 65_500),
    "jpeg-of-two-sizes": lambda: jpeg().replace(
        b"\xff\xc0", segment(0xC0, struct.pack(">BHHB", 8, 8, 8, 1) + b"\1\x11\0") + b"\xff\xc0"
    ),
    "jpeg-of-ten-thousand-passes": lambda: many_scans(10_000),
    "gif-of-4-gigapixels": lambda: gif(65_535, 65_535, (0, 0, 65_535, 65_535)),
    "gif-frame-larger-than-its-canvas": lambda: gif(8, 8, (60_000, 60_000, 8, 8)),
    "gif-of-no-frame": lambda: gif(8, 8),
    "webp-canvas-of-281-terapixels": lambda: webp(b"VP8X", b"\x02\0\0\0" + b"\xff" * 6),
    "webp-lossless-of-268-megapixels": lambda: webp(b"VP8L", b"\x2f\xff\xff\xff\x0f\0\0\0"),
    "webp-lossy-of-268-megapixels": lambda: webp(
        b"VP8 ", b"\x30\x01\0\x9d\x01\x2a\xff\x3f\xff\x3f" + bytes(64)
    ),
    "webp-picture-larger-than-its-canvas": lambda: (
        webp(b"VP8X", b"\0\0\0\0\x07\0\0\x07\0\0") + b"VP8L\x08\0\0\0\x2f\xff\xff\xff\x0f\0\0\0"
    ),
    "webp-frame-larger-than-its-canvas": lambda: (
        webp(b"VP8X", b"\x02\0\0\0\x07\0\0\x07\0\0")
        + b"ANMF\x20\0\0\0"
        + bytes(6)
        + b"\xfe\x3f\0\xfe\x3f\0"
        + bytes(20)
    ),
    "apng-frame-larger-than-its-canvas": lambda: png(
        (b"acTL", struct.pack(">II", 1, 0)),
        (b"fcTL", struct.pack(">IIIIIHHBB", 0, 60_000, 60_000, 0, 0, 1, 1, 0, 0)),
    )[:-40],
    "avif-of-256-pixels-coded-as-4-gigapixels": lambda: avif(single_picture(65_536, 65_536)),
    "avif-of-pictures-that-may-be-4-gigapixels": lambda: avif(video(16, 16)),
    "avif-of-timed-pictures-that-may-be-4-gigapixels": lambda: avif(video(16, 16, timing=True)),
    "avif-of-a-thousand-pictures-over-each-other": lambda: avif(
        single_picture(4096, 4096), items=1000
    ),
    "avif-of-4-gigapixels": lambda: avif(
        single_picture(65_536, 65_536), width=65_536, height=65_536
    ),
    "avif-without-a-picture": lambda: avif(b"", items=0),
    "avif-of-an-endless-size": lambda: avif(b"\x0a" + b"\xff" * 16),
    "bmp-of-4-exapixels": lambda: bmp((1 << 31) - 1, (1 << 31) - 1),
    "bmp-upside-down-of-4-exapixels": lambda: bmp((1 << 31) - 1, -(1 << 31)),
    "ppm-of-a-terapixel": lambda: b"P6 1000000 1000000 255\n",
    "ppm-of-a-size-of-many-digits": lambda: b"P6 " + b"9" * 5000 + b" 1 255\n",
    "ppm-of-a-long-comment": lambda: b"P6 #" + b"c" * 4 * MIB + b"\n8 8 255\n" + bytes(192),
    "tiff-of-18-exapixels": lambda: grey_tiff(
        width=(0x100, 4, 1, 0xFFFFFFFF), height=(0x101, 4, 1, 0xFFFFFFFF)
    ),
    "tiff-tile-of-4-exapixels": lambda: grey_tiff(
        compression=(0x103, 3, 1, 8),
        tile_width=(0x142, 4, 1, 0x7FFFFFF0),
        tile_height=(0x143, 4, 1, 0x7FFFFFF0),
    ),
    "tiff-of-4-billion-strips": lambda: grey_tiff(offsets=(0x111, 4, 0xFFFFFFFF, 8)),
    "tiff-of-a-text-of-4-gigabytes": lambda: grey_tiff(text=(0x10E, 2, 0xFFFFFFFF, 8)),
    "tiff-of-tags-over-each-other": lambda: overlapping_tags(16_000, 4 * MIB),
    "tiff-of-exif-over-each-other": lambda: tiff(
        (0x100, 4, 1, 8),
        (0x101, 4, 1, 8),
        (0x8769, 4, 1, 50),
        tail=overlapping_tags(16_000, 4 * MIB)[8:],
    ),
    "tiff-whose-directory-is-elsewhere": lambda: tiff(first=0xFFFFFFF0),
    "tiff-that-is-its-own-exif": lambda: grey_tiff(
        exif=(0x8769, 4, 1, 8), bits=(0x102, 3, 1, 77), text=(0x10E, 2, 5000, 0)
    ),
    "tiff-of-one-strip-ten-thousand-times": lambda: tiff(
        (0x100, 4, 1, 4096),
        (0x101, 4, 1, 4096),
        (0x102, 3, 1, 1),
        (0x106, 3, 1, 1),
        (0x111, 4, 10_000, 98),
        (0x116, 4, 1, 2048),
        (0x117, 4, 10_000, 98),
        tail=bytes(14) + struct.pack("<I", 98) * 10_000 + bytes(MIB),
    ),
    "bmp-of-runs-of-16-megapixels": lambda: (
        b"BM"
        + struct.pack("<IHHI", 54, 0, 0, 1078)
        + struct.pack("<IiiHHIIiiII", 40, 4096, 4096, 1, 8, 1, 0, 0, 0, 256, 0)
        + bytes(1024)
        + b"\1\1\0\0" * 4096
    ),
    "ppm-of-16-megapixels-in-words": lambda: b"P3 4096 4096 255 " + b"0 " * 4 * MIB,
    "tiff-of-lzma": lambda: grey_tiff(compression=(0x103, 3, 1, 34925)),
    "bigtiff-of-18-exabytes": lambda: (
        b"II+\0\x08\0\0\0" + struct.pack("<QQHHQQ", 16, 1, 0x100, 16, (1 << 64) - 1, 16) + bytes(64)
    ),
    "bigtiff-of-a-place-beyond-2-to-63": lambda: (
        b"II+\0\x08\0\0\0" + struct.pack("<QQHHQQ", 16, 1, 0x100, 4, 3, (1 << 64) - 1) + bytes(64)
    ),
    "bigtiff-of-as-many-tags": lambda: (
        b"II+\0\x08\0\0\0" + struct.pack("<QQ", 16, (1 << 64) - 1) + bytes(MIB)
    ),
}

# Ordinary pictures with something hidden beside them: read, and the hidden part is left alone.
HARMLESS: dict[str, Callable[[], bytes]] = {
    "png-of-60-megabytes-of-text": lambda: png(*[(b"zTXt", b"a\0\0" + zeros(MIB))] * 60),
    "png-of-a-profile-of-a-gigabyte": lambda: png((b"iCCP", b"a\0\0" + zeros(1024 * MIB))),
    "png-of-a-text-of-a-gigabyte": lambda: png((b"iTXt", b"a\0\1\0\0\0" + zeros(1024 * MIB))),
    "png-of-an-exif-of-gigabytes": lambda: png((b"eXIf", exif_bomb(2 * MIB))),
    "png-of-pixels-of-a-gigabyte": lambda: png((b"IDAT", zeros(1024 * MIB))),
    "png-of-two-billion-frames": lambda: png((b"acTL", struct.pack(">II", 0x7FFFFFFF, 0))),
    "jpeg-of-an-exif-of-gigabytes": lambda: (
        jpeg()[:2] + segment(0xE1, b"Exif\0\0" + exif_bomb(60_000)) * 40 + jpeg()[2:]
    ),
    "gif-of-a-million-frames": lambda: gif(8, 8, *[(0, 0, 8, 8)] * MIB),
    "tiff-of-pixels-of-a-gigabyte": lambda: tiff(
        (0x100, 4, 1, 8),
        (0x101, 4, 1, 8),
        (0x102, 3, 1, 8),
        (0x103, 3, 1, 8),
        (0x106, 3, 1, 1),
        (0x111, 4, 1, 8 + 2 + 9 * 12 + 4),
        (0x115, 3, 1, 1),
        (0x116, 4, 1, 8),
        (0x117, 4, 1, len(zeros(1024 * MIB))),
        tail=zeros(1024 * MIB),
    ),
}


def write_all(folder: Path) -> dict[str, Path]:
    """Write every file to *folder*, and one of a terabyte that takes no space."""
    paths = {name: folder / name for name in (*REFUSED, *HARMLESS)}
    for name, path in paths.items():
        path.write_bytes((REFUSED | HARMLESS)[name]())
    sparse = folder / "file-of-a-terabyte"
    with sparse.open("wb") as file:
        file.write(png())
        os.truncate(file.fileno(), 1 << 40)
    return paths | {sparse.name: sparse}
