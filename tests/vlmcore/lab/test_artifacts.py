"""Tests of `vlmcore.lab.artifacts`, `run_plans`, `artifact_documents` and `artifact_files`."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import stat
from pathlib import Path
from typing import Any
from unittest import mock

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifact_cases import artifact, identity, media, plan, scored, server_target, start, target
from sample_cases import samples
from vlmcore.errors import ArtifactError, ContractError, DocumentError
from vlmcore.lab.artifact_documents import artifact_document, artifact_from_document
from vlmcore.lab.artifact_files import digest_in_name, write_artifact
from vlmcore.lab.artifact_schema import ARTIFACT, DOCUMENTS
from vlmcore.lab.artifacts import Artifact, Ending, RunStart, ScoredSample
from vlmcore.lab.events import Failure, FailureKind, Phase, TokenSource, Usage
from vlmcore.lab.inputs import Input
from vlmcore.lab.run_plans import CacheMode
from vlmcore.lab.scoring.scores import Score, ScoreFlag
from vlmcore.lab.sealing import seal
from vlmcore.limits import ArtifactLimits

MISSING = object()


def test_it_is_read_back_as_it_was() -> None:
    """
    Also what a server told, and a score with flags.
    """
    given_twice = [
        Input(target=name, case="dog", prompt_sha256="1" * 64, media=[media()])
        for name in ("mine", "theirs")
    ]
    both = start(
        identity=identity(targets=[target(), server_target(name="theirs")]), inputs=given_twice
    )
    flagged = Score(value=0.25, reason="cut", flags=[ScoreFlag.CUT, ScoreFlag.NEGATED])
    other = ScoredSample(sample=scored(9, target="theirs").sample, score=flagged)
    run = artifact(start=both, samples=[scored(1), other], planned=2)
    assert run == artifact_from_document(json.loads(seal(artifact_document(run)) or "{}"))
    assert run == pickle.loads(pickle.dumps(run))


@given(st.lists(samples(), max_size=3))
def test_any_samples_are_kept_exactly(given_samples: list[Any]) -> None:
    """
    Whatever was measured: failures, empty answers, times of an open loop.
    """
    asked = {(each.target, each.case) for each in given_samples}
    inputs = [Input(target=t, case=c, prompt_sha256="1" * 64) for t, c in sorted(asked)]
    targets = [target(name=name) for name in sorted({t for t, _ in asked})] or [target()]
    phase = next((s.phase for s in given_samples if s.phase is not Phase.WARM_UP), Phase.STEADY)
    run = artifact(
        start=start(identity=identity(targets=targets), inputs=inputs),
        samples=[ScoredSample(sample=s) for s in given_samples if s.phase is phase],
        warm_ups=[
            ScoredSample(sample=s)
            for s in given_samples
            if s.phase is Phase.WARM_UP and phase is Phase.STEADY
        ],
    )
    written = seal(artifact_document(run))
    assert run == artifact_from_document(json.loads(written))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_published_schema_takes_what_is_written(name: str) -> None:
    """
    JSON Schema, draft 2020-12, by another implementation of it.
    """
    jsonschema.Draft202012Validator.check_schema(DOCUMENTS[name].json_schema())
    written = json.loads(seal(artifact_document(artifact())))
    checker = jsonschema.Draft202012Validator(ARTIFACT.json_schema())
    checker.validate(written)
    for change in ({"version": 1}, {"ended": "well"}, {"planned": -1}, {"more": 1}):
        assert not checker.is_valid(written | change)


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        (("version",), 1, "$.version"),
        (("version",), MISSING, "$.version"),
        (("label",), "a/b", "$.label"),
        (("created_at",), "2026-12-01", "$.created_at"),
        (("suite_sha256",), "0" * 64, "$.suite_sha256"),
        (("suite", "name"), "another", "$.suite_sha256"),
        (("plan", "load", "clients"), 0, "$.plan.load.clients"),
        (("plan", "load"), {"kind": "burst"}, "$.plan.load.kind"),
        (("suite",), [], "$.suite"),
        (("identity", "host", "cores"), 0, "$.identity.host.cores"),
        (("identity", "host", "cores"), True, "$.identity.host.cores"),
        (("identity", "host", "cores"), None, "$.identity.unknown"),
        (("identity", "unknown"), {"host.cores": "x"}, "$.identity.unknown"),
        (("identity", "package", "source"), "wheel", "$.identity.package.source"),
        (("identity", "targets"), [], "$.identity.targets"),
        (("identity", "targets", 0, "name"), "other", "$.inputs"),
        (("identity", "targets", 0, "server"), {}, "$.identity.targets[0].server.address"),
        (("identity", "targets", 0, "kind"), "server", "$.identity.targets[0].server"),
        (
            ("identity", "targets", 0, "checkpoint", "files", 0, "sha256"),
            "G" * 64,
            "$.identity.targets[0].checkpoint.files[0].sha256",
        ),
        (("plan", "cache"), "warm", "$.plan.cache"),
        (("plan", "deadline_s"), 0, "$.plan.deadline_s"),
        (("plan", "runs_per_case"), 0, "$.plan.runs_per_case"),
        (("plan", "streamed"), 1, "$.plan.streamed"),
        (("inputs", 0, "media", 0, "height_px"), 0, "$.inputs[0].media[0].height_px"),
        (("inputs", 0, "media", 0, "sent_sha256"), None, "$.inputs[0].media[0].sent_sha256"),
        (("inputs",), [], "$"),
        (("samples", 1, "score", "value"), -0.5, "$.samples[1].score.value"),
        (("samples", 1, "score", "flags"), ["nice"], "$.samples"),
        (("samples", 1, "sample", "closed_ns"), 0, "$.samples[1].sample.closed_ns"),
        (("samples", 1, "sample", "text_sha256"), "0" * 64, "$.samples[1].sample.text_sha256"),
        (("samples", 1, "sample", "phase"), "warm-up", "$.samples"),
        (("warm_ups", 0, "sample", "phase"), "steady", "$.warm_ups"),
        (("ended",), "well", "$.ended"),
        (("planned",), 1.5, "$.planned"),
        (("wall_ns",), -1, "$.wall_ns"),
        (("unknown",), {"samples": "x"}, "$.unknown"),
        (("more",), 1, "$.more"),
        (("samples",), {}, "$.samples"),
    ],
)
def test_a_fault_is_told_with_its_place(
    path: tuple[str | int, ...], value: object, fault: str
) -> None:
    """
    Whoever mends a document finds it.
    """
    document = json.loads(seal(artifact_document(artifact())))
    place = document
    for key in path[:-1]:
        place = place[key]
    if value is MISSING:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    with pytest.raises(DocumentError) as caught:
        artifact_from_document(document)
    found = [where for where, _ in caught.value.faults]
    assert any(where.startswith(fault) for where in found), found


def test_all_faults_are_told_at_once() -> None:
    """
    In the identity, the plan and a sample.
    """
    document = artifact_document(artifact()) | {"digests": {}}
    document["identity"]["host"]["cores"] = 0
    document["plan"]["cache"] = "warm"
    document["samples"][1]["sample"]["attempts"] = 0
    document["samples"][2]["score"]["reason"] = " "
    with pytest.raises(DocumentError) as caught:
        artifact_from_document(document)
    places = {place for place, _ in caught.value.faults}
    assert {"$.identity.host.cores", "$.plan.cache"} <= places


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=8,
    ),
    st.sampled_from(["identity", "suite", "plan", "inputs", "samples", "warm_ups", "unknown"]),
)
def test_any_value_in_any_part_is_read_or_is_our_error(value: Any, key: str) -> None:
    """
    A hostile file ends in a DocumentError, never in a KeyError.
    """
    document = artifact_document(artifact()) | {"digests": {}, key: value}
    with contextlib.suppress(DocumentError):
        artifact_from_document(document)


def test_two_phases_are_never_mixed() -> None:
    """
    Cold starts beside steady samples would be one median of two things.
    """
    cold = [scored(i, phase=Phase.COLD_START) for i in range(2)]
    assert cold == [*artifact(samples=cold, warm_ups=[]).samples]
    for fields in (
        {"samples": [scored(1), cold[0]]},
        {"samples": [scored(1, phase=Phase.WARM_UP)]},
        {"samples": cold},
        {"warm_ups": [scored(1)]},
        {"warm_ups": cold},
    ):
        with pytest.raises(ContractError, match="expected"):
            artifact(**fields)


def test_a_failed_request_has_no_score() -> None:
    """
    A score of what did not end would be a mean of something else.
    """
    failure = Failure(kind=FailureKind.TIMEOUT)
    with pytest.raises(ContractError, match="score: got one of a request that failed"):
        scored(1, failure=failure)
    assert 1 == artifact(samples=[scored(1, score=None, failure=failure)]).failures


def test_what_nobody_told_is_said_and_takes_the_badge_away() -> None:
    """
    A seed, a finish reason, the number of tokens: null, with the number of samples it is null in.
    """
    assert {} == artifact().unknown
    run = artifact(
        start=start(plan=plan(generation={"max_new_tokens": 96, "temperature": 0.0})),
        samples=[scored(1), scored(2, finish_reason=None, usage=None), scored(3, chunks=[])],
        wall_ns=None,
    )
    assert {
        "wall_ns": "was not told",
        "plan.generation.seed": "was not said",
        "samples.finish_reason": "was not told in 1 of 3 samples",
        "samples.usage.generated_tokens": "was not told in 1 of 3 samples",
        "samples.chunks": "was not told in 1 of 3 samples",
    } == run.unknown
    assert run.unknown == artifact_document(run)["unknown"]


def test_an_empty_answer_is_known_to_be_empty() -> None:
    """
    It is no gap in the evidence: no figure is made from it, which is another matter.
    """
    assert {} == artifact(samples=[scored(1, chunks=[], text="")]).unknown


def test_a_cache_that_nobody_told_of_is_unknown() -> None:
    """
    Whether a prefix was kept decides a time to the first token of 35 ms.
    """
    silent = Usage(source=TokenSource.SERVER, prompt_tokens=130, generated_tokens=3)
    assert artifact().cache_is_known
    assert not artifact(samples=[scored(1), scored(2, usage=silent)]).cache_is_known
    assert not artifact(samples=[scored(1, usage=None)]).cache_is_known


def test_cases_and_targets_of_a_run_are_there_once() -> None:
    """
    Otherwise a sample would have two inputs.
    """
    one = Input(target="mine", case="dog", prompt_sha256="1" * 64)
    for inputs in ([one, one], [Input(target="theirs", case="dog", prompt_sha256="1" * 64)]):
        with pytest.raises(ContractError, match="expected each case of each target once"):
            start(inputs=inputs)


@pytest.mark.parametrize(
    "fields",
    [
        {"load": {"kind": "closed", "clients": 1}},
        {"generation": {"top_p": float("nan")}},
        {"cache": "unique"},
        {"runs_per_case": 0},
        {"runs_per_case": True},
        {"warm_ups_per_case": -1},
        {"order_seed": 1 << 53},
        {"retries": 0.5},
        {"max_failures": -1},
        {"deadline_s": float("inf")},
        {"deadline_s": "60"},
        {"streamed": "yes"},
        {"generation": None},
        {"goals": {1: 2}},
    ],
)
def test_a_plan_that_is_none_is_refused(fields: dict[str, Any]) -> None:
    """
    Before the first request.
    """
    (name,) = fields
    with pytest.raises(ContractError, match=f"^{name}"):
        plan(**fields)
    assert CacheMode.UNIQUE is plan().cache


@pytest.mark.parametrize("moment", ["", "now", "2026-12-01T08:00:00", "2026-12-01 08:00:00Z", 7])
def test_a_run_says_when_it_began_in_utc(moment: object) -> None:
    """
    A time without its zone is no time.
    """
    with pytest.raises(ContractError, match="created_at: got"):
        start(created_at=moment)


@pytest.mark.parametrize("kind", [RunStart, Artifact, ScoredSample])
def test_parts_of_other_classes_are_refused(kind: type) -> None:
    """
    Contracts check when run what annotations only promise.
    """
    made = {RunStart: start, Artifact: artifact}.get(kind)
    if made is None:
        with pytest.raises(ContractError, match="sample: got dict"):
            ScoredSample(sample={})  # type: ignore[arg-type]
        return
    name = "plan" if kind is RunStart else "start"
    with pytest.raises(ContractError, match=f"{name}: got dict"):
        made(**{name: {}})


def test_a_file_is_named_by_its_label_and_its_content(tmp_path: Path) -> None:
    """
    ``sha256sum`` says the same.
    """
    path = write_artifact(artifact(), tmp_path)
    label, _, rest = path.name.rpartition("-")
    assert ("baseline", ".json") == (label, rest[12:])
    assert rest[:12] == digest_in_name(path.name)
    assert [path] == list(tmp_path.iterdir())


def test_the_same_evidence_is_written_once_and_other_is_never_lost(tmp_path: Path) -> None:
    """
    What is there is not touched; what else has the name is refused.
    """
    path = write_artifact(artifact(), tmp_path)
    before = path.stat()
    assert path == write_artifact(artifact(), tmp_path)
    assert (before.st_ino, before.st_mtime_ns) == (path.stat().st_ino, path.stat().st_mtime_ns)
    path.write_bytes(b"{}")
    with pytest.raises(ArtifactError, match="holds something else"):
        write_artifact(artifact(), tmp_path)
    assert b"{}" == path.read_bytes()


def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path: Path) -> None:
    """
    Neither under its name nor beside it.
    """
    with (
        mock.patch("os.fsync", side_effect=OSError(28, "No space left on device")),
        pytest.raises(ArtifactError, match="cannot be written: No space left on device"),
    ):
        write_artifact(artifact(), tmp_path)
    assert [] == list(tmp_path.iterdir())


def test_a_file_system_without_links_gets_the_file_whole(tmp_path: Path) -> None:
    """
    As FAT; what is there is not overwritten either.
    """
    with mock.patch("os.link", side_effect=OSError(1, "Operation not permitted")):
        path = write_artifact(artifact(), tmp_path)
        data = path.read_bytes()
        path.write_bytes(b"{}")
        with pytest.raises(ArtifactError, match="holds something else"):
            write_artifact(artifact(), tmp_path)
    assert seal(artifact_document(artifact())) == data
    assert [path] == list(tmp_path.iterdir())


def test_a_name_that_is_a_pipe_or_a_folder_is_refused_without_waiting(tmp_path: Path) -> None:
    """
    Opening a pipe would wait for its writer.
    """
    path = write_artifact(artifact(), tmp_path)
    for make in (os.mkfifo, os.mkdir):
        path.unlink() if path.exists() else None
        make(path)
        with pytest.raises(ArtifactError, match="is no regular file"):
            write_artifact(artifact(), tmp_path)
        assert not stat.S_ISREG(path.stat().st_mode)
        path.rmdir() if path.is_dir() else path.unlink()


@pytest.mark.parametrize("number", [1e20, -2e19, (1 << 64) - 1])
def test_a_number_that_could_not_be_read_again_is_not_written(
    tmp_path: Path, number: float
) -> None:
    """
    ECMAScript writes 1e20 without an exponent, and our readers take whole numbers of 64 bits.
    """
    run = artifact(start=start(plan=plan(goals={"x": number})))
    with pytest.raises(ArtifactError, match="baseline: cannot be kept: JSON: got "):
        write_artifact(run, tmp_path)


def test_a_file_that_would_be_too_large_is_not_written(tmp_path: Path) -> None:
    """
    It could not be read again.
    """
    with pytest.raises(ArtifactError, match="max_file_bytes: got "):
        write_artifact(artifact(), tmp_path, limits=ArtifactLimits(max_file_bytes=100))
    assert [] == list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_an_error_of_ours(tmp_path: Path) -> None:
    """
    With the path, and what the system said.
    """
    with pytest.raises(ArtifactError, match=r"none/baseline-.*: cannot be written: does not exist"):
        write_artifact(artifact(), tmp_path / "none")


@pytest.mark.parametrize("ending", Ending)
def test_each_ending_is_written_and_read(ending: Ending) -> None:
    """
    A run that was stopped is evidence too.
    """
    run = artifact(ended=ending, reason="because", wall_ns=None)
    assert run == artifact_from_document(artifact_document(run) | {"digests": {}})
