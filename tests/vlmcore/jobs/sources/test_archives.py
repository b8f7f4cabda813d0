"""Tests of `vlmcore.jobs.sources.archives`."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import pickle
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError, JobSourceError, MediaError
from vlmcore.jobs.items import BytesContent, Stamp
from vlmcore.jobs.sources.archives import MemberContent, TarImages
from vlmcore.limits import JobSourceLimits

SAMPLES = ["0.json", "0.jpg", "0.seg.png", "1.jpg", "1.json", "1.seg.png"]
posix_only = pytest.mark.skipif(os.name != "posix", reason="names are bytes there")


def content_of(name: str) -> bytes:
    return f"bytes of {name}".encode("utf-8", "replace") * (1 + len(name) % 100)


def write(path: Path, names: Iterable[str], mode: str = "w") -> Path:
    """Write an archive of files with these names."""
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(content_of(name))
            archive.addfile(member, io.BytesIO(content_of(name)))
    return path


def header(name: str = "a.jpg", *, kind: bytes = b"0", size: bytes = b"%011o\0" % 0) -> bytes:
    """Write the header of a member as its bytes are."""
    fields = [
        name.encode().ljust(100, b"\0"),
        b"0000644\0",
        b"0000000\0",
        b"0000000\0",
        size.ljust(12, b"\0"),
        b"00000000000\0",
    ]
    start, rest = b"".join(fields), kind + b"\0" * 100 + b"ustar\0" + b"00"
    whole = (start + b" " * 8 + rest).ljust(512, b"\0")
    return whole[:148] + b"%06o\0 " % sum(whole) + whole[156:]


def binary(number: int) -> bytes:
    """Write a number as GNU tar does where octal digits do not suffice."""
    return (
        (number % (1 << 95) | 1 << 95).to_bytes(12, "big")
        if number >= 0
        else (number % (1 << 96)).to_bytes(12, "big")
    )


def keys(*paths: Path, **options: bool) -> list[str]:
    return [item.key for item in TarImages(paths, **options)]


def problem(data: bytes, folder: Path, **limits: int) -> str:
    (folder / "bad.tar").write_bytes(data)
    with pytest.raises(JobSourceError) as caught:
        list(TarImages(folder / "bad.tar", limits=JobSourceLimits(**limits)))
    assert str(folder / "bad.tar") == caught.value.where
    return caught.value.problem


@pytest.mark.parametrize("mode", ["w", "w:gz"])
@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_the_images_of_an_archive_are_read_in_their_order(
    tmp_path: Path, mode: str, kind: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Of every format of tar, packed or not; other files are passed over.
    """
    monkeypatch.setattr(tarfile, "DEFAULT_FORMAT", kind)
    monkeypatch.setattr(tarfile.TarFile, "format", kind)
    long = f"{'photos/' * 18}c.webp"
    path = write(tmp_path / "a.tar", ["b.PNG", "readme.txt", "a/a.jpg", long], mode)
    found = list(TarImages(path))
    assert ["a.tar/b.PNG", "a.tar/a/a.jpg", f"a.tar/{long}"] == [item.key for item in found]
    assert [content_of("b.PNG"), content_of("a/a.jpg"), content_of(long)] == [
        item.content.read().data for item in found
    ]
    assert [None] * 3 == [item.path for item in found]


def test_a_member_is_read_later_and_by_other_processes_without_its_bytes(tmp_path: Path) -> None:
    """
    Where it is in the file is enough.
    """
    path = write(tmp_path / "a.tar", ["a.jpg"])
    (item,) = TarImages(path)
    content = pickle.loads(pickle.dumps(item.content))
    assert isinstance(content, MemberContent)
    assert content_of("a.jpg") == content.read().data
    size = len(content_of("a.jpg"))
    assert Stamp(size, path.stat().st_mtime_ns) == content.stamp()


def test_a_member_of_a_packed_archive_is_held_until_it_is_used(tmp_path: Path) -> None:
    """
    Finding it again would unpack all that is before it.
    """
    (item,) = TarImages(write(tmp_path / "a.tgz", ["a.jpg"], "w:gz"))
    assert isinstance(item.content, BytesContent)
    assert item.content.stamp() is None


def test_of_each_sample_the_first_image_is_taken(tmp_path: Path) -> None:
    """
    The others are masks, and more of the same; what an archive is, is seen at its beginning.
    """
    path = write(tmp_path / "a.tar", SAMPLES)
    assert ["a.tar/0.jpg", "a.tar/1.jpg"] == keys(path)
    packed = write(tmp_path / "b.tar.gz", [f"./x/{name}" for name in SAMPLES], "w:gz")
    assert ["b.tar.gz/x/0.jpg", "b.tar.gz/x/1.jpg"] == keys(packed)


@pytest.mark.parametrize(
    "names",
    [
        ["2024.01.jpg", "2024.02.jpg", "2025.01.jpg"],
        ["scan.1.jpg", "scan.1.txt", "scan.2.jpg", "scan.2.txt"],
        ["a.jpg", "a.png", "b.jpg"],
        ["a/1.jpg", "b/1.jpg", "b/1.json"],
    ],
)
def test_no_image_is_lost_where_nobody_said_that_there_are_samples(
    tmp_path: Path, names: list[str]
) -> None:
    """
    Points are in many names.
    """
    path = write(tmp_path / "a.tar", names)
    pictures = [name for name in names if not name.endswith(("txt", "json"))]
    assert [f"a.tar/{name}" for name in pictures] == keys(path)


def test_whether_there_are_samples_can_be_said(tmp_path: Path) -> None:
    """
    Either way.
    """
    path = write(tmp_path / "a.tar", ["0.a.jpg", "0.b.jpg", "1.jpg", "1.seg.png", "1.json"])
    assert ["a.tar/0.a.jpg", "a.tar/1.jpg"] == keys(path, samples=True)
    assert 4 == len(keys(path, samples=False))
    with pytest.raises(ContractError, match=r"^samples: got 'no'"):
        TarImages(path, samples="no")  # type: ignore[arg-type]


def test_the_shards_of_a_pattern_are_read_one_after_the_other(tmp_path: Path) -> None:
    """
    An image is called by its shard, from the folder that all of them are in.
    """
    for i in range(8, 12):
        (tmp_path / "train").mkdir(exist_ok=True)
        write(tmp_path / f"train/s-{i:03}.tar", [f"{i}.jpg"])
    images = TarImages(tmp_path / "train/s-{008..011}.tar")
    expected = [f"s-{i:03}.tar/{i}.jpg" for i in range(8, 12)]
    assert expected == [item.key for item in images]
    assert (tmp_path / "train", str(tmp_path / "train")) == (images.place, images.name)
    assert expected[2:] == [item.key for item in TarImages(str(tmp_path / "train/s-01?.tar"))]
    one = TarImages(tmp_path / "train/s-008.tar")
    assert (tmp_path / "train/s-008.tar", False) == (one.place, one.is_quick_to_list)


def test_shards_of_the_same_name_in_two_folders_are_told_apart(tmp_path: Path) -> None:
    """
    Their folders are a part of what their images are called.
    """
    paths = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        paths.append(write(tmp_path / folder / "s.tar", ["1.jpg"]))
    assert ["a/s.tar/1.jpg", "b/s.tar/1.jpg"] == keys(*paths)


def test_a_file_that_was_added_again_is_an_image_of_its_own(tmp_path: Path) -> None:
    """
    As ``tar --append`` does it: each has its row.
    """
    assert ["a.tar/1.jpg", "a.tar/2.jpg", "a.tar/1.jpg (2)"] == keys(
        write(tmp_path / "a.tar", ["1.jpg", "2.jpg", "1.jpg"])
    )


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("/etc/a.jpg", "etc/a.jpg"),
        ("../../a.jpg", "a.jpg"),
        ("a/../../b//./c.jpg", "a/b/c.jpg"),
        ("a\nb\x1b[31m.jpg", "a\\x0ab\\x1b[31m.jpg"),
        ("caf\u00e9 \u2028.jpg", "caf\u00e9 \\u2028.jpg"),
        ("\udcff.jpg", "\\xff.jpg"),
    ],
)
def test_the_name_of_a_member_leads_nowhere_but_down(tmp_path: Path, name: str, key: str) -> None:
    """
    Caption files are called after it.
    """
    assert [f"a.tar/{key}"] == keys(write(tmp_path / "a.tar", [name]))


def test_what_is_no_regular_file_is_passed_over(tmp_path: Path) -> None:
    """
    Links, devices, pipes, folders and sparse files; and what is hidden, as macOS adds it.
    """
    kinds = b"123456SDKLMNV"
    members = b"".join(header(kind=kind.to_bytes(1, "big")) for kind in kinds if kind not in b"KL")
    (tmp_path / "a.tar").write_bytes(members + header("b.jpg") + bytes(1024))
    assert ["a.tar/b.jpg"] == [key for key in keys(tmp_path / "a.tar") if "/a.jpg" not in key]
    path = write(tmp_path / "b.tar", ["._a.jpg", ".b/c.jpg", "./d.jpg"])
    assert ["b.tar/d.jpg"] == keys(path)


def test_a_member_that_says_eight_exbibytes_is_not_made_room_for(tmp_path: Path) -> None:
    """
    It fails as an image; the archive ends there, and says so.
    """
    data = write(tmp_path / "a.tar", ["a.jpg"]).read_bytes()[:1024]
    (tmp_path / "a.tar").write_bytes(data + header("b.jpg", size=binary((1 << 63) - 1)))
    found = iter(TarImages(tmp_path / "a.tar"))
    assert content_of("a.jpg") == next(found).content.read().data
    with pytest.raises(MediaError, match="max_encoded_bytes: got 9223372036854775807, limit is"):
        next(found).content.read()
    with pytest.raises(JobSourceError, match="cannot be read as a tar: "):
        next(found)


@pytest.mark.parametrize("pack", [gzip.compress, bytes])
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty file"),
        (b"x" * 2000, ""),
        (header(size=binary(-1)), "has a member of a negative size"),
        (header(size=binary(-513)), "has a member"),
        (header(size=binary(-(1 << 40))), "has a member"),
        (header(size=b"%011o\0" % 4096), "unexpected end of data"),
        (header() + b"x" * 512, "has something else than a header after one of its members"),
        (header() + header()[:200], "has something else than a header after one of its members"),
        (header(kind=b"L", size=binary(1 << 30)), "has a header of 1073741824 bytes, limit is"),
        (header(kind=b"x", size=binary(1 << 62)), "has a header of 4611686018427387904 bytes"),
        (header(kind=b"x", size=binary(-5)), ""),
        (header(kind=b"x", size=b"%011o\0" % 6) + b"999 a\n".ljust(512, b"\0"), ""),
    ],
)
def test_an_archive_that_lies_is_refused(
    tmp_path: Path, data: bytes, said: str, pack: Callable[[bytes], bytes]
) -> None:
    """
    Before there is room for what it says, and never in a circle.
    """
    found = problem(pack(data), tmp_path)
    assert found.startswith(f"cannot be read as a tar: {said}")


def test_headers_of_headers_without_end_are_refused(tmp_path: Path) -> None:
    """
    Each is read by a call of its own.
    """
    size = b"%011o\0" % 0
    assert problem(header(kind=b"x", size=size) * 5000, tmp_path).startswith("cannot be read as")
    assert problem(header(kind=b"L", size=size) * 5000, tmp_path).startswith("cannot be read as")


def test_an_archive_that_is_cut_short_says_so_after_its_images(tmp_path: Path) -> None:
    """
    A copy that broke off is not half a data set without a word.
    """
    data = write(tmp_path / "a.tar", ["a.jpg", "b.jpg"]).read_bytes()
    for packed in (data, gzip.compress(data)):
        (tmp_path / "a.tar").write_bytes(packed[: 1200 if packed is data else -40])
        found = iter(TarImages(tmp_path / "a.tar", samples=False))
        with pytest.raises(JobSourceError, match="cannot be read as a tar: "):
            list(found)


def test_a_member_that_is_cut_short_is_told_of_when_it_is_read(tmp_path: Path) -> None:
    """
    Also where the archive became shorter after it was looked through.
    """
    path = write(tmp_path / "a.tar", ["a.jpg", "empty.jpg"])
    item, _ = TarImages(path)
    path.write_bytes(path.read_bytes()[:520])
    with pytest.raises(MediaError, match=r"got 8 bytes of [0-9]+, the archive is cut short"):
        item.content.read()
    path.unlink()
    with pytest.raises(MediaError, match=r"a\.jpg: cannot be read: its archive does not exist"):
        item.content.read()
    assert item.content.stamp() is None


def test_an_empty_member_is_no_image(tmp_path: Path) -> None:
    """
    As an empty file is none.
    """
    (tmp_path / "a.tar").write_bytes(header() + bytes(1024))
    (item,) = TarImages(tmp_path / "a.tar")
    with pytest.raises(MediaError, match="is empty, expected an image"):
        item.content.read()


def test_an_archive_without_images_has_none(tmp_path: Path) -> None:
    """
    Which is no fault.
    """
    (tmp_path / "a.tar").write_bytes(bytes(1024))
    assert [] == keys(tmp_path / "a.tar")
    assert [] == keys(write(tmp_path / "b.tar", ["a.txt"]))


@posix_only
def test_an_archive_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """
    Neither are links in a circle followed.
    """
    os.mkfifo(tmp_path / "pipe.tar")
    (tmp_path / "loop.tar").symlink_to("loop.tar")
    for name in ("pipe.tar", "loop.tar"):
        with pytest.raises(JobSourceError, match=name):
            TarImages(tmp_path / name)


@given(data=st.binary(max_size=1500), at=st.integers(0, 3000))
def test_any_bytes_are_an_archive_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, at: int
) -> None:
    """
    Also those of an archive that was written over somewhere.
    """
    folder = tmp_path_factory.getbasetemp()
    good = bytearray(write(folder / "good.tar", SAMPLES).read_bytes())
    good[at : at + len(data)] = data
    for each in (data, bytes(good), gzip.compress(bytes(good)), gzip.compress(good)[:at] + data):
        (folder / "any.tar").write_bytes(each)
        try:
            for item in TarImages(folder / "any.tar"):
                item.key.encode()
                with contextlib.suppress(MediaError):
                    item.content.read()
        except JobSourceError:
            pass


READ_ALONE = """
import re, sys
from pathlib import Path
from vlmcore.jobs.sources.archives import TarImages

def most():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

before = most()
count = sum(1 for _ in TarImages(sys.argv[1], samples=False))
print(count, (most() - before) // 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="says how much was held")
def test_many_members_take_little_memory(tmp_path: Path) -> None:
    """
    `tarfile` keeps what it knows of each, a kilobyte or more.
    """
    data = b"".join(header(f"{i}.txt") for i in range(40_000)) + header() + bytes(1024)
    (tmp_path / "a.tar").write_bytes(data)
    command = [sys.executable, "-c", READ_ALONE, str(tmp_path / "a.tar")]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    count, mebibytes = map(int, found.split())
    assert (1, True) == (count, mebibytes < 20)
