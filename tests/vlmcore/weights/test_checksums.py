"""Tests of `vlmcore.weights.checksums`."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import MissingDependencyError, WeightsError
from vlmcore.weights.checksums import checksum_of, new_checksum, sha256_of, whole_checksum


@given(st.lists(st.binary(max_size=40)))
def test_a_checksum_is_the_same_however_the_bytes_come(parts: list[bytes]) -> None:
    """
    At once, or piece by piece; XXH3 of 128 bits as others make it.
    """
    checksum = new_checksum()
    for part in parts:
        checksum.update(part)
    whole = b"".join(parts)
    assert xxhash.xxh3_128_hexdigest(whole) == checksum.hexdigest() == checksum_of(whole)


def test_the_checksum_of_a_payload_is_that_of_its_tensors_in_order() -> None:
    """
    Another order is another payload.
    """
    a, b = checksum_of(b"a"), checksum_of(b"b")
    assert checksum_of(bytes.fromhex(a) + bytes.fromhex(b)) == whole_checksum([a, b])
    assert whole_checksum([a, b]) != whole_checksum([b, a])
    assert checksum_of(b"") == whole_checksum([])


def test_the_digest_of_a_file_is_that_of_all_of_it(tmp_path: Path) -> None:
    """
    From its first byte, wherever somebody has read to; its descriptor stays open.
    """
    data = os.urandom(5_000_000)
    (tmp_path / "a").write_bytes(data)
    with (tmp_path / "a").open("rb") as file:
        file.read(100)
        assert hashlib.sha256(data).hexdigest() == sha256_of(file.fileno(), "a")
        assert hashlib.sha256(b"").hexdigest() == sha256_of(file.fileno(), "a", stop=lambda: True)
        assert not file.closed


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """
    By the path that the caller has.
    """
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(WeightsError) as caught:
            sha256_of(fd, "the path")
    finally:
        os.close(fd)
    assert "the path" == caught.value.path


def test_without_xxhash_the_extra_that_brings_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    To the letter.
    """
    monkeypatch.setitem(sys.modules, "xxhash", None)
    monkeypatch.delitem(sys.modules, "vlmcore.weights._xxhash", raising=False)
    with pytest.raises(MissingDependencyError, match=r"vlmcore\[weights\]"):
        checksum_of(b"")


def test_the_sha256_of_a_file_needs_no_descriptor_more(tmp_path: Path) -> None:
    """
    A checkpoint of many files has taken nearly all, and the place in the file is left alone.
    """
    resource = pytest.importorskip("resource")
    path = tmp_path / "file"
    path.write_bytes(b"some bytes")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with path.open("rb") as file:
        file.read(5)
        resource.setrlimit(resource.RLIMIT_NOFILE, (file.fileno() + 1, hard))
        try:
            found = sha256_of(file.fileno(), str(path))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert b"bytes" == file.read()
    assert hashlib.sha256(b"some bytes").hexdigest() == found
