"""Tests of `vlmcore.lab.verifying` and `vlmcore.lab.sealing`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifact_cases import artifact, identity, scored, start
from vlmcore.contracts.json_text import read_json
from vlmcore.errors import ArtifactError, ArtifactTamperedError, ContractError, LabError
from vlmcore.lab.artifact_documents import artifact_document
from vlmcore.lab.artifact_files import artifact_name, write_artifact
from vlmcore.lab.artifacts import Artifact
from vlmcore.lab.canonical import canonical_bytes
from vlmcore.lab.events import Phase
from vlmcore.lab.sealing import edits_in, seal, sealed_bytes
from vlmcore.lab.verifying import (
    EditKind,
    Verification,
    read_artifact,
    verify_artifact,
    verify_bytes,
)
from vlmcore.limits import ArtifactLimits

WHOLE = artifact(1, warm_ups=[])
BYTES = seal(artifact_document(WHOLE))
NAME = artifact_name("baseline", BYTES)
DIGEST = hashlib.sha256(BYTES).hexdigest()


def renamed(data: bytes) -> Verification:
    """Verify what somebody changed who then gave the file the name that it must have."""
    return verify_bytes(data, name=artifact_name("baseline", data))


def edited(change: Callable[[dict[str, Any]], object]) -> Verification:
    """Verify what was changed in its values, spelled canonically and named well."""
    document = json.loads(seal(artifact_document(artifact())))
    change(document)
    return renamed(canonical_bytes(document))


def found(verification: Verification) -> list[tuple[EditKind, str]]:
    """Give the kind and place of each edit."""
    return [(edit.kind, edit.place) for edit in verification.edits]


def test_what_was_written_is_sound_and_read_back_as_it_was(tmp_path: Path) -> None:
    """
    Nothing is lost, and nothing is added.
    """
    path = write_artifact(artifact(), tmp_path)
    assert artifact() == read_artifact(path)
    verification = verify_artifact(path)
    assert (True, True, ()) == (
        verification.is_sound,
        verification.is_verified,
        verification.edits,
    )
    assert hashlib.sha256(path.read_bytes()).hexdigest() == verification.sha256


def test_every_bit_of_a_sealed_document_counts() -> None:
    """
    Each bit of a small one, and each byte made a space or a zero.
    """
    sealed = seal({"a": [1, "\u00e9"], "b": {"c": None}})
    for at in range(len(sealed)):
        for byte in {sealed[at] ^ 1 << bit for bit in range(8)} | {*b" 0"} - {sealed[at]}:
            changed = sealed[:at] + bytes([byte]) + sealed[at + 1 :]
            assert is_edited(changed), (at, byte)


def is_edited(data: bytes) -> bool:
    """Say whether bytes are no sealed document."""
    try:
        document = read_json(data)
    except ContractError:
        return True
    return any(edits_in(document)) or sealed_bytes(document) != data


@given(st.integers(0, len(BYTES) - 1), st.integers(1, 255))
def test_a_changed_byte_is_found_even_if_the_file_is_named_anew(at: int, mask: int) -> None:
    """
    The digests inside and the one canonical spelling leave no byte that says nothing.
    """
    changed = BYTES[:at] + bytes([BYTES[at] ^ mask]) + BYTES[at + 1 :]
    assert not renamed(changed).is_sound


@given(st.integers(0, len(BYTES)), st.binary(min_size=1, max_size=3))
def test_bytes_that_are_put_in_are_found(at: int, more: bytes) -> None:
    """
    Also a space, or a newline at the end.
    """
    assert not renamed(BYTES[:at] + more + BYTES[at:]).is_sound


@given(st.integers(0, len(BYTES) - 1), st.integers(1, 5))
def test_bytes_that_are_taken_out_are_found(at: int, count: int) -> None:
    """
    And a file that is cut.
    """
    assert not renamed(BYTES[:at] + BYTES[at + count :]).is_sound


@given(st.binary(max_size=200))
def test_any_bytes_give_an_answer_and_not_an_error(data: bytes) -> None:
    """
    What is no artifact is said to be none.
    """
    assert not renamed(data).is_sound


EDITS: dict[str, tuple[Callable[[dict[str, Any]], object], list[tuple[EditKind, str]]]] = {
    "a time": (
        lambda d: d["samples"][2]["sample"].update(closed_ns=4_000_000_000),
        [(EditKind.CHANGED, "$.samples[2]")],
    ),
    "a text": (
        lambda d: d["samples"][0]["sample"].update(text="a cat."),
        [
            (EditKind.CHANGED, "$.samples[0]"),
            (EditKind.CONTRADICTION, "$.samples[0].sample.text_sha256"),
        ],
    ),
    "a score": (
        lambda d: d["samples"][1]["score"].update(value=0.5),
        [(EditKind.CHANGED, "$.samples[1]")],
    ),
    "a warm-up": (
        lambda d: d["warm_ups"][0]["score"].update(value=0.5),
        [(EditKind.CHANGED, "$.warm_ups[0]")],
    ),
    "a sample less": (
        lambda d: d["samples"].pop(1),
        [(EditKind.CHANGED, "$.samples")],
    ),
    "a sample twice": (
        lambda d: d["samples"].append(d["samples"][0]),
        [(EditKind.CHANGED, "$.samples")],
    ),
    "another order": (
        lambda d: d["samples"].reverse(),
        [(EditKind.CHANGED, "$.samples")],
    ),
    "the version of a package": (
        lambda d: d["identity"]["packages"].update(torch="2.9.1"),
        [(EditKind.CHANGED, "$.identity")],
    ),
    "an image": (
        lambda d: d["inputs"][0]["media"][0].update(height_px=1365, width_px=2048),
        [(EditKind.CHANGED, "$.inputs[0]")],
    ),
    "the suite": (
        lambda d: d["suite"].update(name="another"),
        [(EditKind.CHANGED, "$.suite"), (EditKind.CONTRADICTION, "$.suite_sha256")],
    ),
    "the plan": (
        lambda d: d["plan"]["generation"].update(seed=1),
        [(EditKind.CHANGED, "$.plan")],
    ),
    "how it ended": (
        lambda d: d.update(ended="stopped"),
        [(EditKind.CHANGED, "$.ended")],
    ),
    "a digest": (
        lambda d: d["digests"].update(label="0" * 64),
        [(EditKind.CHANGED, "$.label")],
    ),
    "no digests": (
        lambda d: d.pop("digests"),
        [(EditKind.CHANGED, "$.digests"), (EditKind.CONTRADICTION, "$.digests")],
    ),
    "digests of another kind": (
        lambda d: d.update(digests=[]),
        [(EditKind.CHANGED, "$.digests"), (EditKind.CONTRADICTION, "$.digests")],
    ),
    "a part more": (
        lambda d: d.update(note="it was fast"),
        [(EditKind.CHANGED, "$.note"), (EditKind.CONTRADICTION, "$.note")],
    ),
    "a part less": (
        lambda d: d.pop("reason"),
        [(EditKind.CHANGED, "$.reason"), (EditKind.CONTRADICTION, "$.reason")],
    ),
}


@pytest.mark.parametrize("what", EDITS)
def test_an_edit_is_placed_and_its_kind_is_said(what: str) -> None:
    """
    Whoever made it spelled the file canonically and gave it the right name, but no new digests.
    """
    change, expected = EDITS[what]
    verification = edited(change)
    assert expected == found(verification)
    assert verification.artifact is None


def test_of_two_edits_both_are_told() -> None:
    """
    The error lists them, to be read as data too.
    """
    verification = edited(
        lambda d: (d["plan"].update(retries=1), d["samples"][0]["score"].update(value=0))
    )
    with pytest.raises(ArtifactTamperedError) as caught:
        verification.require_sound()
    assert ["$.plan", "$.samples[0]"] == [place for place, _ in caught.value.edits]
    assert isinstance(caught.value, (ArtifactError, LabError, ValueError))


@pytest.mark.parametrize(
    "spelled",
    [
        json.dumps(json.loads(BYTES)).encode(),
        BYTES + b"\n",
        b" " + BYTES,
        BYTES.replace(b'"planned":1', b'"planned":1.0'),
        BYTES.replace(b"dog", b"d\\u006fg", 1),
    ],
    ids=["as Python writes it", "newline", "space", "point", "escape"],
)
def test_the_same_values_in_another_spelling_are_an_edit(spelled: bytes) -> None:
    """
    Two files with different bytes are never the same evidence.
    """
    assert spelled != BYTES
    assert EditKind.RESPELLED in [edit.kind for edit in renamed(spelled).edits]


def test_digests_that_were_made_anew_are_found_by_the_name() -> None:
    """
    Whoever seals again cannot make the same name.
    """
    document = json.loads(BYTES)
    document["samples"][0]["score"]["value"] = 0
    sealed = seal(document)
    assert [(EditKind.RENAMED, "name")] == found(verify_bytes(sealed, name=NAME))


def test_a_file_that_was_sealed_and_named_anew_is_found_by_a_digest_that_was_kept() -> None:
    """
    A name proves what is in a file, not which file was meant.
    """
    document = json.loads(BYTES)
    document["samples"][0]["score"]["value"] = 0
    sealed = seal(document)
    name = artifact_name("baseline", sealed)
    assert verify_bytes(sealed, name=name).is_sound
    assert [(EditKind.RENAMED, "name")] == found(verify_bytes(sealed, name=name, sha256=DIGEST))
    with pytest.raises(ContractError, match="sha256"):
        verify_bytes(sealed, name=name, sha256="abc")


def test_a_renamed_file_is_sound_only_with_its_digest() -> None:
    """
    Without a digest in the name nothing shows that it was not sealed again.
    """
    assert [(EditKind.RENAMED, "name")] == found(verify_bytes(BYTES, name="run.json"))
    assert verify_bytes(BYTES, name="run.json", sha256=DIGEST).is_sound
    assert verify_bytes(BYTES, name=f"other label-{DIGEST[:12]}.json").is_sound


def test_what_cannot_have_been_measured_is_a_contradiction_although_it_is_sealed() -> None:
    """
    A first token after the last, a score above 1, a sample of no case of the run.
    """
    for change in (
        lambda d: d["samples"][0]["sample"].update(first_token_ns=7),
        lambda d: d["samples"][0]["score"].update(value=1.5),
        lambda d: d["samples"][0]["sample"].update(case="cat"),
        lambda d: d["samples"][0]["sample"].update(phase="cold-start", block=-1),
        lambda d: d["inputs"].clear(),
        lambda d: d["identity"]["host"].update(cores=None),
        lambda d: d["unknown"].update({"identity.host.cores": "x"}),
        lambda d: d.update(created_at="yesterday"),
        lambda d: d.update(label="../x"),
        lambda d: d["plan"].update(cache="warm"),
        lambda d: d["identity"]["targets"][0]["options"].update(api_key="sk-1234567890"),
    ):
        document = json.loads(BYTES)
        change(document)
        verification = renamed(seal(document))
        assert {EditKind.CONTRADICTION} == {edit.kind for edit in verification.edits}


@pytest.mark.parametrize(
    "document",
    [
        {},
        [],
        None,
        7,
        {"schema": "comfyui-vlm/benchmark-run", "version": 1},
        {"schema": "comfyui-vlm/robot-actions", "version": 2},
        {"schema": "comfyui-vlm/benchmark-run", "version": True},
        {"schema": ["comfyui-vlm/benchmark-run"], "version": 2},
    ],
)
def test_what_has_no_digests_is_said_not_to_be_sealed(document: object) -> None:
    """
    An artifact of version 1 may have been edited by anybody: it gets no badge.
    """
    assert [EditKind.NOT_SEALED] == [e.kind for e in renamed(canonical_bytes(document)).edits]


def test_a_run_with_something_unknown_is_sound_and_gets_no_badge(tmp_path: Path) -> None:
    """
    It is what was written; what was written is not all there is to know.
    """
    host = attrs.evolve(identity().host, processor=None)
    path = write_artifact(artifact(start=start(identity=identity(host=host))), tmp_path)
    verification = verify_artifact(path)
    assert (True, False) == (verification.is_sound, verification.is_verified)
    assert verification.artifact is not None
    assert {"identity.host.processor": "was not told"} == verification.artifact.unknown


def test_a_file_that_is_too_large_or_none_is_refused(tmp_path: Path) -> None:
    """
    Before memory is spent on it.
    """
    path = write_artifact(artifact(), tmp_path)
    with pytest.raises(ArtifactError, match="max_file_bytes: got more than 100, limit is 100"):
        verify_artifact(path, limits=ArtifactLimits(max_file_bytes=100))
    with pytest.raises(ArtifactError, match="does not exist"):
        verify_artifact(tmp_path / "none.json")
    with pytest.raises(ArtifactError, match="is no regular file"):
        verify_artifact(tmp_path)
    with pytest.raises(ArtifactError, match="is no path"):
        verify_artifact("a\0b")


def test_values_nested_deep_are_no_artifact_and_no_crash() -> None:
    """
    Ten thousand lists in each other.
    """
    deep = b'{"schema":' + b"[" * 10_000 + b"]" * 10_000 + b"}"
    assert [EditKind.NOT_JSON] == [edit.kind for edit in renamed(deep).edits]


@given(
    st.lists(st.text(st.characters(exclude_categories=("Cs",)), max_size=30), max_size=4),
    st.integers(0, 1 << 40),
)
def test_any_run_is_sound_when_it_was_written(texts: list[str], wall_ns: int) -> None:
    """
    Whatever a model wrote: line separators, quotation marks, nothing at all.
    """
    samples = [scored(i, text=text, phase=Phase.STEADY) for i, text in enumerate(texts)]
    run: Artifact = artifact(samples=samples, wall_ns=wall_ns)
    verification = renamed(seal(artifact_document(run)))
    assert verification.edits == ()
    assert run == verification.artifact
