"""Hostile files of weights; each built from the format up, and one lie in each."""

from __future__ import annotations

import copy
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

MIB = 1 << 20
MAGIC = b"FLASHPK\0"
HUGE = 1 << 70

Change = Callable[[dict[str, Any]], Any]

V3 = {
    "format": "flashpack_v3",
    "target_dtype": "float32",
    "align_bytes": 128,
    "total_elems": 38,
    "index": [
        {"name": "a", "shape": [2, 3], "offset": 0, "length": 6},
        {"name": "b", "shape": [6], "offset": 32, "length": 6},
    ],
}
V3_BYTES = 152
V4 = {
    "format": "flashpack_v4",
    "align_bytes": 128,
    "total_payload_bytes": 268,
    "total_elems": 44,
    "macroblocks": [
        {"dtype": "float32", "offset_bytes": 0, "length_bytes": 152, "length_elems": 38},
        {"dtype": "bfloat16", "offset_bytes": 256, "length_bytes": 12, "length_elems": 6},
    ],
    "index": [
        {"name": "a", "shape": [2, 3], "offset": 0, "length": 6, "macroblock": 0},
        {"name": "b", "shape": [6], "offset": 32, "length": 6, "macroblock": 0},
        {"name": "c", "shape": [6], "offset": 0, "length": 6, "macroblock": 1},
    ],
}
V4_BYTES = 268
HEADER = {
    "__metadata__": {"format": "pt"},
    "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
    "b": {"dtype": "BF16", "shape": [6], "data_offsets": [24, 36]},
}
HEADER_BYTES = 36


def ended(payload: bytes, footer: bytes, length: int | None = None) -> bytes:
    """Put a footer behind a payload, with its length or another one."""
    length = len(footer) if length is None else length
    return payload + footer + length.to_bytes(8, "little") + MAGIC


def headed(header: bytes, payload: bytes, length: int | None = None) -> bytes:
    """Put a header before a payload, with its length or another one."""
    length = len(header) if length is None else length
    return length.to_bytes(8, "little") + header + payload


def changed(document: dict[str, Any], change: Change) -> bytes:
    """Write *document* as JSON, changed; a change that returns text takes its place."""
    document = copy.deepcopy(document)
    text = change(document)
    return text.encode() if isinstance(text, str) else json.dumps(document).encode()


def v3(change: Change = lambda _: None, payload: bytes = bytes(V3_BYTES)) -> bytes:
    """Build a pack of version 3."""
    return ended(payload, changed(V3, change))


def v4(change: Change = lambda _: None, payload: bytes = bytes(V4_BYTES)) -> bytes:
    """Build a pack of version 4."""
    return ended(payload, changed(V4, change))


def st(change: Change = lambda _: None, payload: bytes = bytes(HEADER_BYTES)) -> bytes:
    """Build a file of safetensors."""
    return headed(changed(HEADER, change), payload)


def first(**values: Any) -> Change:
    """Change what the first tensor of a pack says."""
    return lambda footer: footer["index"][0].update(values)


def second(**values: Any) -> Change:
    """Change what the second tensor of a pack says."""
    return lambda footer: footer["index"][1].update(values)


def block(number: int, **values: Any) -> Change:
    """Change what a block says of itself."""
    return lambda footer: footer["macroblocks"][number].update(values)


def head(**values: Any) -> Change:
    """Change what a footer says beside its tensors."""
    return lambda footer: footer.update(values)


def tensor(**values: Any) -> Change:
    """Change what safetensors say of the first tensor."""
    return lambda header: header["a"].update(values)


def called(name: Any) -> Change:
    """Give the first tensor of safetensors another name."""
    return lambda header: header.update({name: header.pop("a")})


def text(document: dict[str, Any], old: str, new: str) -> Change:
    """Replace some of the JSON, for what no value can say."""
    written = json.dumps(document)
    assert old in written, old
    return lambda _: written.replace(old, new, 1)


def many_entries(count: int) -> bytes:
    """Build a pack of *count* scalars, whose last one lies."""
    entries = ",".join(
        f'{{"name":"n{i}","shape":[],"offset":{i * 32},"length":1}}' for i in range(count - 1)
    )
    last = '{"name":"last","shape":[],"offset":1,"length":1}'
    start = '{"format":"flashpack_v3","target_dtype":"float32","align_bytes":128,"total_elems":'
    footer = f'{start}{count * 32 - 31},"index":[{entries},{last}]}}'.encode()
    return ended(bytes((count * 32 - 31) * 4), footer)


def many_names(count: int) -> bytes:
    """Build a file of safetensors with *count* empty tensors, whose last one lies."""
    entries = ",".join(
        f'"n{i}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}' for i in range(count - 1)
    )
    return headed(
        f'{{{entries},"last":{{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}}}'.encode(), b"\0"
    )


def million_lengths(*, is_pack: bool) -> bytes:
    """Say the same of a few tensors, and of the next that it has seven million axes."""
    if is_pack:
        tensor = '{{"name":"n{i}","shape":{shape},"offset":{at},"length":1}}'
        start, end = '{"format":"flashpack_v3","index":[', "]}"
    else:
        tensor = '"n{i}":{{"dtype":"U8","shape":{shape},"data_offsets":[{at},{stop}]}}'
        start, end = "{", "}"
    said = [tensor.format(i=i, shape="[1]", at=i, stop=i + 1) for i in range(4)]
    said.append(tensor.format(i=4, shape=f"[1{',1' * 7_000_000}]", at=4, stop=5))
    text = f"{start}{','.join(said)}{end}".encode()
    return ended(b"", text) if is_pack else headed(text, bytes(5))


def shards(**changes: Any) -> dict[str, Any]:
    """Say of two shards which tensor is where, and change some of it."""
    where = {"a": "m-00001-of-00002.safetensors", "b": "m-00002-of-00002.safetensors"}
    return {"metadata": {"total_size": 8}, "weight_map": {**where, **changes}}


def nothing_of(shape: list[int], *, is_pack: bool) -> bytes:
    """Say of a tensor of no numbers that it has the other axes of *shape*; all else is true."""
    if not is_pack:
        return st(lambda header: header.update(c={**C, "shape": shape}))
    entries = [{"name": "c", "shape": shape, "offset": 0, "length": 0}, dict(V3["index"][0])]
    return v3(head(index=entries, total_elems=6), payload=bytes(24))


C = {"dtype": "F32", "data_offsets": [HEADER_BYTES, HEADER_BYTES]}
NOTHING: dict[str, list[int]] = {
    "and-of-too-many-bytes": [0, 1 << 62],
    "and-of-too-many-numbers": [1 << 40, 1 << 40, 0],
}
NAMES = {
    "a-path": "../../etc/passwd",
    "a-slash": "a/b",
    "a-backslash": "a\\b",
    "a-new-line": "a\nb",
    "an-escape": "a\x1b[31m",
    "a-zero-byte": "a\0b",
    "another-direction": "a\u202eb",
    "no-characters": "",
    "spaces": "  ",
    "too-many-characters": "a" * 1500,
}
OFFSETS: dict[str, Any] = {
    "negative": -128,
    "overflowing": (1 << 63) - 1,
    "of-64-bits": (1 << 64) - 128,
    "of-more-bits": HUGE,
    "a-float": 0.0,
    "a-text": "0",
    "a-bool": False,
    "null": None,
    "a-list": [0],
}
SHAPES: dict[str, Any] = {
    "with-a-minus-one": [-1, 6],
    "of-another-size": [2, 4],
    "that-overflows": [1 << 40, 1 << 40],
    "of-floats": [2.0, 3.0],
    "of-bools": [True, 6],
    "of-texts": ["2", "3"],
    "no-list": 6,
    "of-65-axes": [1] * 64 + [6],
}

PACKS: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "one-byte": lambda: b"\0",
    "only-magic": lambda: MAGIC,
    "no-magic": lambda: v3()[:-1] + b"\1",
    "no-footer": lambda: bytes(1024),
    "payload-cut-by-less-than-the-footer": lambda: v3(payload=bytes(V3_BYTES - 24)),
    "payload-cut-to-nothing": lambda: v3(payload=b""),
    "bytes-added-to-the-payload": lambda: v3(payload=bytes(V3_BYTES + 128)),
    "bytes-before-the-pack": lambda: b"\0" * 128 + v4(),
    "bytes-after-the-pack": lambda: v3() + b"\0",
    "footer-longer-than-the-file": lambda: ended(bytes(64), b"{}", 1 << 20),
    "footer-of-2-to-the-64": lambda: ended(bytes(64), b"{}", (1 << 64) - 1),
    "footer-of-nothing": lambda: ended(bytes(64), b""),
    "footer-no-json": lambda: ended(bytes(64), b"\x80" * 32),
    "footer-no-object": lambda: ended(bytes(64), b"[1,2]"),
    "footer-cut-off": lambda: ended(bytes(V3_BYTES), json.dumps(V3).encode()[:-9]),
    "footer-with-something-behind": lambda: v3(lambda _: json.dumps(V3) + "{}"),
    "footer-in-another-encoding": lambda: ended(bytes(V3_BYTES), json.dumps(V3).encode("utf-16")),
    "footer-with-nan": lambda: v3(text(V3, "38", "NaN")),
    "footer-with-a-million-digits": lambda: v3(text(V3, "38", "3" * MIB)),
    "footer-with-a-key-twice": lambda: v3(
        text(V3, '"total_elems"', '"total_elems": 6, "total_elems"')
    ),
    "entry-with-a-key-twice": lambda: v3(text(V3, '"length"', '"offset": 0, "length"')),
    "footer-nested-deep": lambda: v3(lambda _: '{"x":' + "[" * 200_000 + "]" * 200_000 + "}"),
    "footer-nested-to-the-limit-of-its-size": lambda: v3(lambda _: '{"index":' + "[" * 15 * MIB),
    "footer-of-empty-lists": lambda: v3(lambda _: '{"index":[' + "[]," * 5 * MIB + "[]]}"),
    "footer-of-empty-lists-elsewhere": lambda: v3(lambda _: '{"x":[' + "[]," * 5 * MIB + "[]]}"),
    "footer-of-many-keys": lambda: v3(
        lambda _: "{" + ",".join(f'"{i}":0' for i in range(MIB)) + "}"
    ),
    "footer-of-one-text": lambda: v3(lambda _: '{"x":"' + "a" * 15 * MIB + '"}'),
    "footer-of-one-escaped-text": lambda: v3(lambda _: '{"x":"' + "\\u00e4" * 2 * MIB + '"}'),
    "footer-of-wide-characters": lambda: v3(lambda _: '{"x":"\U0001f916' + "a" * 15 * MIB + '"}'),
    "footer-of-spaces": lambda: v3(lambda _: " " * 15 * MIB),
    "footer-of-120-million-bytes": lambda: ended(b"", b" " * 120_000_000),
    "a-million-entries": lambda: many_entries(1_000_000),
    "entries-to-the-limit": lambda: many_entries(1 << 17),
    "seven-million-axes-after-one": lambda: million_lengths(is_pack=True),
    "unknown-format": lambda: v3(head(format="flashpack_v5")),
    "no-format": lambda: v3(head(format=None)),
    "no-index": lambda: v3(lambda footer: footer.pop("index")),
    "index-no-list": lambda: v3(head(index={"a": 1})),
    "entry-no-object": lambda: v3(head(index=[1])),
    "entry-without-a-shape": lambda: v3(lambda footer: footer["index"][0].pop("shape")),
    "version-3-with-blocks": lambda: v4(head(format="flashpack_v3")),
    "version-4-without-blocks": lambda: v3(head(format="flashpack_v4")),
    "blocks-of-nothing": lambda: v4(head(macroblocks=[])),
    "blocks-no-list": lambda: v4(head(macroblocks={})),
    "too-many-blocks": lambda: v4(head(macroblocks=V4["macroblocks"] * 200)),
    "align-negative": lambda: v3(head(align_bytes=-128)),
    "align-huge": lambda: v3(head(align_bytes=1 << 62)),
    "align-of-another-pack": lambda: v3(head(align_bytes=256)),
    "unknown-dtype": lambda: v3(head(target_dtype="float3")),
    "dtype-of-torch-that-is-none": lambda: v3(head(target_dtype="nn")),
    "dtype-no-text": lambda: v3(head(target_dtype=[1])),
    "dtype-of-4-bits": lambda: v3(head(target_dtype="float4_e2m1fn_x2")),
    "total-too-large": lambda: v3(head(total_elems=1 << 40)),
    "total-negative": lambda: v3(head(total_elems=-1)),
    "total-of-elements-of-others": lambda: v4(head(total_elems=45)),
    "total-of-bytes-of-others": lambda: v4(head(total_payload_bytes=1 << 34)),
    "name-no-text": lambda: v3(first(name=7)),
    "name-twice": lambda: v3(second(name="a")),
    "name-of-half-a-character": lambda: v3(text(V3, '"a"', '"\\ud800"')),
    "two-names-for-the-same-bytes": lambda: v3(second(offset=0)),
    "tensors-that-overlap": lambda: v3(second(offset=1)),
    "tensor-moved-within-its-block": lambda: v3(first(offset=8)),
    "tensor-behind-its-block": lambda: v3(second(offset=64)),
    "tensor-in-the-next-block": lambda: v4(second(offset=64)),
    "tensor-misaligned": lambda: v3(second(offset=31)),
    "length-of-another-shape": lambda: v3(second(length=5)),
    "length-negative": lambda: v3(second(length=-6)),
    "block-of-no-such-number": lambda: v4(first(macroblock=2)),
    "block-of-a-negative-number": lambda: v4(first(macroblock=-1)),
    "block-of-a-text": lambda: v4(first(macroblock="0")),
    "block-over-the-footer": lambda: v4(block(1, length_bytes=40, length_elems=20)),
    "blocks-that-overlap": lambda: v4(block(1, offset_bytes=128)),
    "block-misaligned": lambda: v4(block(1, offset_bytes=255)),
    "block-negative": lambda: v4(block(1, offset_bytes=-2)),
    "block-of-16-gigabytes": lambda: v4(block(1, length_bytes=1 << 34, length_elems=1 << 33)),
    "block-of-another-length": lambda: v4(block(1, length_bytes=14)),
    "block-no-object": lambda: v4(head(macroblocks=[0, 1])),
    **{f"name-of-{what}": lambda name=name: v3(first(name=name)) for what, name in NAMES.items()},
    **{f"offset-{what}": lambda at=at: v3(first(offset=at)) for what, at in OFFSETS.items()},
    **{
        f"shape-{what}": lambda shape=shape: v3(first(shape=shape))
        for what, shape in SHAPES.items()
    },
    **{
        f"shape-of-nothing-{what}": lambda shape=shape: nothing_of(shape, is_pack=True)
        for what, shape in NOTHING.items()
    },
}
SAFETENSORS: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "seven-bytes": lambda: bytes(7),
    "header-longer-than-the-file": lambda: headed(b"{}", b"", 1 << 20),
    "header-of-2-to-the-63": lambda: headed(b"{}", b"", 1 << 63),
    "header-of-120-million-bytes": lambda: headed(b" " * 120_000_000, b""),
    "header-of-nothing": lambda: headed(b"", bytes(36)),
    "header-no-json": lambda: headed(b"\x80" * 32, b""),
    "header-no-object": lambda: headed(b"[]", b""),
    "header-nested-deep": lambda: st(lambda _: '{"x":' + "[" * 200_000 + "]" * 200_000 + "}"),
    "header-of-empty-lists": lambda: st(lambda _: '{"x":[' + "[]," * 5 * MIB + "[]]}"),
    "header-of-wide-characters": lambda: st(lambda _: '{"\U0001f916' + "a" * 15 * MIB + '":0}'),
    "header-of-metadata": lambda: st(
        lambda _: '{"__metadata__":{' + ",".join(f'"{i}":""' for i in range(MIB)) + "}}"
    ),
    "header-of-digits": lambda: st(lambda _: '{"__metadata__":{"a":' + "1" * MIB + "}}"),
    "a-million-names": lambda: many_names(1_000_000),
    "names-to-the-limit": lambda: many_names(1 << 17),
    "seven-million-axes-after-one": lambda: million_lengths(is_pack=False),
    "payload-cut": lambda: st(payload=bytes(HEADER_BYTES - 1)),
    "bytes-added": lambda: st(payload=bytes(HEADER_BYTES + 1)),
    "hole-between-tensors": lambda: st(tensor(data_offsets=[0, 20], shape=[5])),
    "hole-before-tensors": lambda: st(lambda header: header.pop("a")),
    "tensors-that-overlap": lambda: st(tensor(data_offsets=[12, 36])),
    "two-names-for-the-same-bytes": lambda: st(lambda header: header.update(c=header["b"])),
    "name-twice": lambda: st(text(HEADER, '"b": ', '"a": ')),
    "metadata-twice": lambda: st(text(HEADER, '"b": {', '"__metadata__": {}, "b": {')),
    "metadata-no-texts": lambda: st(head(__metadata__={"format": 1})),
    "metadata-no-object": lambda: st(head(__metadata__=[])),
    "entry-no-object": lambda: st(head(a=1)),
    "entry-with-more": lambda: st(tensor(strides=[3, 1])),
    "entry-with-less": lambda: st(lambda header: header["a"].pop("shape")),
    "unknown-dtype": lambda: st(tensor(dtype="F3")),
    "dtype-no-text": lambda: st(tensor(dtype=None)),
    "dtype-of-4-bits": lambda: st(tensor(dtype="F4", shape=[48])),
    "offsets-in-reverse": lambda: st(tensor(data_offsets=[24, 0])),
    "one-offset": lambda: st(tensor(data_offsets=[0])),
    "three-offsets": lambda: st(tensor(data_offsets=[0, 12, 24])),
    "end-behind-the-file": lambda: st(tensor(data_offsets=[0, 1 << 62])),
    **{f"name-of-{what}": lambda name=name: st(called(name)) for what, name in NAMES.items()},
    **{
        f"offset-{what}": lambda at=at: st(tensor(data_offsets=[at, 24]))
        for what, at in OFFSETS.items()
        if at is not False
    },
    "offset-a-bool": lambda: st(tensor(data_offsets=[False, 24])),
    **{
        f"shape-{what}": lambda shape=shape: st(tensor(shape=shape))
        for what, shape in SHAPES.items()
    },
    **{
        f"shape-of-nothing-{what}": lambda shape=shape: nothing_of(shape, is_pack=False)
        for what, shape in NOTHING.items()
    },
}
INDEXES: dict[str, Callable[[], Any]] = {
    "names-a-file-that-is-not-there": lambda: shards(a="m-00003-of-00002.safetensors"),
    "names-a-file-elsewhere": lambda: shards(a="../m-00001-of-00002.safetensors"),
    "names-an-absolute-path": lambda: shards(a="/m-00001-of-00002.safetensors"),
    "names-a-path-of-windows": lambda: shards(a="C:\\m.safetensors"),
    "names-another-kind-of-file": lambda: shards(a="m.bin"),
    "names-a-hidden-file": lambda: shards(a=".m.safetensors"),
    "names-a-file-with-a-new-line": lambda: shards(a="m\n.safetensors"),
    "names-a-number": lambda: shards(a=1),
    "names-the-other-file": lambda: shards(a="m-00002-of-00002.safetensors"),
    "names-a-tensor-that-is-not-there": lambda: shards(c="m-00002-of-00002.safetensors"),
    "leaves-a-tensor-of-a-shard-out": lambda: {"weight_map": {"c": "m-00002-of-00002.safetensors"}},
    "names-a-pipe": lambda: shards(a="pipe.safetensors"),
    "names-a-folder": lambda: shards(a="folder.safetensors"),
    "names-a-loop-of-links": lambda: shards(a="loop.safetensors"),
    "names-too-many-files": lambda: shards(**{f"n{i}": f"n{i}.safetensors" for i in range(5000)}),
    "names-nothing": lambda: {"weight_map": {}},
    "no-map": lambda: {"metadata": {}},
    "a-map-that-is-a-list": lambda: {"weight_map": ["a"]},
    "no-object": lambda: [1],
    "a-map-twice": lambda: (
        '{"weight_map":{"a":"m.safetensors"},"weight_map":{"a":"m.safetensors"}}'
    ),
    "a-tensor-twice": lambda: '{"weight_map":{"a":"m.safetensors","a":"m.safetensors"}}',
    "nested-deep": lambda: '{"weight_map":' + '{"a":' * 200_000,
    "a-million-names": lambda: (
        '{"weight_map":{' + ",".join(f'"{i}":"m.safetensors"' for i in range(MIB)) + "}}"
    ),
}


def write_all(folder: Path) -> dict[str, Path]:
    """Write every file, and return the paths by what is wrong with them."""
    paths = dict(_special(folder))
    for name, build in PACKS.items():
        paths[f"pack-{name}"] = folder / f"pack-{name}.flashpack"
        paths[f"pack-{name}"].write_bytes(build())
    for name, build in SAFETENSORS.items():
        paths[f"safetensors-{name}"] = folder / f"safetensors-{name}.safetensors"
        paths[f"safetensors-{name}"].write_bytes(build())
    for name, build in INDEXES.items():
        paths[f"index-{name}"] = _write_index(folder / f"index-{name}", build())
    return paths


def _write_index(folder: Path, document: Any) -> Path:
    folder.mkdir()
    for number, name in enumerate("ab", 1):
        entry = {name: {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}
        shard = headed(json.dumps(entry).encode(), b"abcd")
        (folder / f"m-{number:05}-of-00002.safetensors").write_bytes(shard)
    os.mkfifo(folder / "pipe.safetensors")
    (folder / "folder.safetensors").mkdir()
    (folder / "loop.safetensors").symlink_to("loop.safetensors")
    path = folder / "m.safetensors.index.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def _special(folder: Path) -> dict[str, Path]:
    """Make what is no regular file."""
    made = {
        name: folder / f"{name}.flashpack"
        for name in (
            "pipe",
            "socket",
            "folder",
            "link-to-nothing",
            "link-to-itself",
            "link-to-a-device",
            "link-to-a-pipe",
            "of-a-terabyte",
        )
    }
    os.mkfifo(made["pipe"])
    with socket.socket(socket.AF_UNIX) as bound:
        here = Path.cwd()
        os.chdir(folder)  # the path of a socket is short
        bound.bind(made["socket"].name)
        os.chdir(here)
    made["folder"].mkdir()
    made["link-to-nothing"].symlink_to("nowhere")
    made["link-to-itself"].symlink_to(made["link-to-itself"].name)
    made["link-to-a-device"].symlink_to("/dev/zero")
    made["link-to-a-pipe"].symlink_to(made["pipe"].name)
    with made["of-a-terabyte"].open("wb") as file:
        file.truncate(1 << 40)
    two = folder / "folder-of-two"
    two.mkdir()
    for name in ("one.flashpack", "two.flashpack"):
        (two / name).write_bytes(v3())
    return {
        **made,
        "nowhere": folder / "nowhere.flashpack",
        "folder-of-two": two,
        "device": Path("/dev/zero"),
        "terminal": Path("/dev/tty"),
        "inside-a-file": made["of-a-terabyte"] / "x.flashpack",
    }
