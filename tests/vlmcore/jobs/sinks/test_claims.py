"""Tests of `vlmcore.jobs.sinks.claims`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import JobSinkError
from vlmcore.jobs.items import BytesContent, FileContent, Item
from vlmcore.jobs.journal import Journal
from vlmcore.jobs.sinks.claims import claim_files, claimed_file
from vlmcore.jobs.sinks.settings import NameClash, Sidecars
from vlmcore.jobs.sources._contents import without_bytes

ROOT = Path("/photos")
APART = Sidecars(clash=NameClash.DISAMBIGUATE)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "journal") as journal:
        yield journal


def item_at(name: str) -> Item:
    path = ROOT / name
    return Item(key=name, content=FileContent(path), path=path)


def claim(journal: Journal, names: Iterable[str], sidecars: Sidecars) -> dict[str, str]:
    """Claim files in a run of their own, and tell which were."""
    items = [item_at(name) for name in names]
    journal.begin({})
    journal.register((n, item.key) for n, item in enumerate(items))
    claim_files(journal, sidecars, items)
    journal.commit()
    found = {item.key: claimed_file(journal, item.key) for item in items}
    return {key: str(path.relative_to(ROOT)) for key, path in found.items() if path is not None}


def test_a_caption_lies_beside_its_image(journal: Journal) -> None:
    """
    By the image's name with another ending.
    """
    expected = {"a.jpg": "a.txt", "b/a.jpg": "b/a.txt", "b/c.d.png": "b/c.d.txt"}
    assert expected == claim(journal, expected, Sidecars())


def test_two_images_that_want_one_file_are_refused(journal: Journal) -> None:
    """
    `a.jpg` and `a.png` both want `a.txt`: both are named, before anything is asked.
    """
    with pytest.raises(JobSinkError) as caught:
        claim(journal, ["a.jpg", "a.png", "b.jpg"], Sidecars())
    assert (
        "caption files: /photos/a.txt is wanted by a.jpg and a.png: give them different names, or "
        "choose 'disambiguate', which writes a.jpg.txt and a.png.txt"
    ) == str(caught.value)


def test_two_images_that_want_one_file_are_told_apart_if_that_is_chosen(journal: Journal) -> None:
    """
    Others keep the short name.
    """
    expected = {"a.jpg": "a.jpg.txt", "a.png": "a.png.txt", "b.jpg": "b.txt"}
    assert expected == claim(journal, expected, APART)


def test_an_image_keeps_the_file_that_it_had(journal: Journal) -> None:
    """
    When one with a similar name comes, and when that one goes.
    """
    assert {"a.jpg": "a.txt"} == claim(journal, ["a.jpg"], APART)
    both = {"a.jpg": "a.txt", "a.png": "a.png.txt"}
    assert both == claim(journal, both, APART)
    assert {"a.png": "a.png.txt"} == claim(journal, ["a.png"], APART)
    assert both == claim(journal, both, APART)


def test_a_newcomer_with_a_similar_name_is_refused(journal: Journal) -> None:
    """
    Where they are not to be told apart: it is not given another name in silence.
    """
    claim(journal, ["a.jpg"], Sidecars())
    with pytest.raises(JobSinkError, match=r"is wanted by a\.jpg and a\.png"):
        claim(journal, ["a.jpg", "a.png"], Sidecars())


def test_many_clashes_are_told_of_in_a_few_words(tmp_path: Path, journal: Journal) -> None:
    """
    The ids of records may all end alike: 'x.1', 'x.2' and so on.
    """
    items = [Item(key=f"x.{n}", content=BytesContent("", b"")) for n in range(2000)]
    items += [
        Item(key=f"{n}.{end}", content=BytesContent("", b"")) for n in range(9) for end in "ab"
    ]
    journal.begin({})
    with pytest.raises(JobSinkError) as caught:
        claim_files(journal, Sidecars(folder=tmp_path), items)
    assert "; and more: give them different names" in caught.value.problem
    assert 2000 > len(caught.value.problem)


def test_what_has_no_file_has_no_place_for_a_caption(journal: Journal) -> None:
    """
    The members of an archive: a table, or a folder, is what they need.
    """
    journal.begin({})
    item = Item(key="a.jpg", content=BytesContent("", b""))
    with pytest.raises(JobSinkError, match="write a table, or name a folder"):
        claim_files(journal, Sidecars(), [item])


def test_a_line_that_names_no_image_keeps_none_of_the_others_from_its_file(
    journal: Journal,
) -> None:
    """
    A URL in a list, or a blank path: it has no bytes, and fails when its turn comes.
    """
    journal.begin({})
    bad = without_bytes("http://x/a.jpg", "list", "is a URL and is not fetched")
    claim_files(journal, Sidecars(), [bad, item_at("b.jpg"), item_at("."), item_at("/")])
    assert claimed_file(journal, bad.key) is None
    assert ROOT / "b.txt" == claimed_file(journal, "b.jpg")


def test_captions_in_a_folder_of_their_own_stay_in_it(tmp_path: Path, journal: Journal) -> None:
    """
    Whatever a record or a member of an archive is called.
    """
    keys = ["../../etc/passwd.png", "/abs/a.png", "c:\\d\\e.png", "..", "a/./b.png", "\0.png"]
    journal.begin({})
    items = [Item(key=key, content=BytesContent("", b"")) for key in keys]
    claim_files(journal, Sidecars(folder=tmp_path, clash=NameClash.DISAMBIGUATE), items)
    found = [claimed_file(journal, key) for key in keys]
    assert ["etc/passwd.txt", "abs/a.txt", "c_/d/e.txt"] == [
        path.relative_to(tmp_path).as_posix() for path in found[:3] if path is not None
    ]
    for path in found:
        assert path is not None
        assert Path(os.path.normpath(path)).is_relative_to(tmp_path)


def test_names_that_are_no_utf8_are_names(journal: Journal) -> None:
    """
    The file beside is called by the same bytes.
    """
    path = Path(os.fsdecode(b"/photos/\xff.jpg"))
    journal.begin({})
    claim_files(journal, Sidecars(), [Item(key="x", content=FileContent(path), path=path)])
    found = claimed_file(journal, "x")
    assert found is not None
    assert b"/photos/\xff.txt" == os.fsencode(found)


STEMS = st.sampled_from(["a", "b", "a.jpg", "a.txt", "a.png", "b/a", "b/a.jpg", ".a"])
NAMES = st.builds(
    "{}{}".format, STEMS, st.sampled_from([".jpg", ".png", ".webp", ".txt", ".jpg.txt", ""])
)
LISTS = st.lists(NAMES, unique=True, max_size=9)


@given(runs=st.lists(LISTS, min_size=1, max_size=4), sidecars=st.sampled_from([Sidecars(), APART]))
def test_nobody_is_given_the_file_of_another(
    runs: list[list[str]], sidecars: Sidecars, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """
    Whatever the images are called, and whichever come and go between runs: each has one file, no
    two have the same, none is an image, and who had one keeps it as long as it is there.
    """
    had: dict[str, str] = {}
    with Journal(tmp_path_factory.mktemp("claims") / "journal") as journal:
        journal.database.execute("PRAGMA synchronous = OFF")
        for names in runs:
            try:
                files = claim(journal, names, sidecars)
            except JobSinkError:
                journal.database.execute("ROLLBACK")
                continue
            assert set(names) == files.keys()
            assert len(names) == len(set(files.values()))
            assert set() == set(files.values()) & set(names)
            taken = set(files.values())
            for name, file in had.items():
                assert files.get(name, file) == file or file in taken
            had = {key: path for key, path in had.items() if path not in taken} | files


@given(names=LISTS)
def test_claims_are_the_same_in_every_order_and_run(
    names: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """
    A rerun gives each image the file that it has.
    """
    folder = tmp_path_factory.mktemp("claims")
    found = []
    for n, each in enumerate([names, sorted(names, reverse=True)]):
        with Journal(folder / str(n)) as journal:
            journal.database.execute("PRAGMA synchronous = OFF")
            try:
                first = claim(journal, each, APART)
            except JobSinkError:
                found.append({})
                continue
            assert first == claim(journal, each, APART)
            found.append(first)
    assert found[0] == found[1]
