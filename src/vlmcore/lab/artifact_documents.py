"""The evidence of a run as JSON, both ways, and the lines of its journal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from vlmcore._arguments import shown
from vlmcore._copying import thawed
from vlmcore.contracts.faults import Faults
from vlmcore.errors import DocumentError
from vlmcore.lab.artifact_schema import (
    ARTIFACT,
    ENDED,
    JOURNAL_END,
    JOURNAL_SAMPLE,
    JOURNAL_START,
    START,
)
from vlmcore.lab.artifacts import Artifact, Ending, RunStart, ScoredSample
from vlmcore.lab.identity_documents import (
    identity_document,
    input_document,
    read_identity,
    read_input,
)
from vlmcore.lab.loads import load_document, load_from
from vlmcore.lab.run_plans import CacheMode, RunPlan
from vlmcore.lab.sample_documents import read_sample, sample_document
from vlmcore.lab.scoring.scores import Score, ScoreFlag

__all__ = [
    "artifact_document",
    "artifact_from_document",
    "end_document",
    "read_scored",
    "scored_document",
    "start_document",
    "start_from_document",
]


def artifact_document(artifact: Artifact) -> dict[str, Any]:
    """
    Write the evidence of a run as plain values of JSON, without its digests.

    `vlmcore.lab.sealing.seal` adds them and makes its bytes.
    """
    return {
        **ARTIFACT.header(),
        **_started(artifact.start),
        "warm_ups": [_scored(each) for each in artifact.warm_ups],
        "samples": [_scored(each) for each in artifact.samples],
        **_ended(artifact),
        "unknown": artifact.unknown,
    }


def artifact_from_document(value: Any) -> Artifact:
    """
    Read the evidence of a run from plain values of JSON.

    Whether it is what was written is not looked at: `vlmcore.lab.verifying` does that.

    Raises:
        DocumentError: If there are faults; all of them are listed.
    """
    faults = Faults(ARTIFACT.name)
    data = ARTIFACT.read(value, faults)
    many = {
        key: [
            read_scored(each, f"$.{key}[{i}]", faults) for i, each in enumerate(data.get(key, ()))
        ]
        for key in ("warm_ups", "samples")
    }
    start = _read_start(data, faults)
    made: dict[str, Any] = {key: data[key] for key in ENDED} | many
    made["ended"] = Ending(data["ended"])
    places = {key: f"$.{key}" for key in (*ENDED, *many)}
    artifact = faults.finish(lambda: Artifact(start=start, **made), **places)
    if artifact.unknown != data["unknown"]:
        missing = sorted({*artifact.unknown} ^ {*data["unknown"]})
        faults.add("$.unknown", f"got other places than those that are null: {missing[:3]}")
        faults.raise_any()
    return artifact


def start_document(start: RunStart, planned: int) -> dict[str, Any]:
    """Write the first line of a journal."""
    return {**JOURNAL_START.header(), **_started(start), "planned": planned}


def start_from_document(value: Any) -> tuple[RunStart, int]:
    """
    Read the first line of a journal, and how many samples were planned.

    Raises:
        DocumentError: If there are faults; all of them are listed.
    """
    faults = Faults(JOURNAL_START.name)
    data = JOURNAL_START.read(value, faults)
    start = _read_start(data, faults)
    return start, data["planned"]


def scored_document(scored: ScoredSample) -> dict[str, Any]:
    """Write one request as a line of a journal."""
    return {**JOURNAL_SAMPLE.header(), **_scored(scored)}


def end_document(artifact: Artifact) -> dict[str, Any]:
    """Write the last line of a journal."""
    return {**JOURNAL_END.header(), **_ended(artifact)}


def read_scored(value: Any, path: str, faults: Faults) -> ScoredSample | None:
    """
    Read one request that stands in another document.

    Args:
        value: The request, in plain values of JSON.
        path: Where it stands.
        faults: Is given what is wrong.

    Returns:
        The request; ``None`` if anything is wrong with it.
    """
    sample = read_sample(value["sample"], f"{path}.sample", faults)
    said, at = value["score"], f"{path}.score"
    scored: ScoredSample | None = None
    with faults.at(path, score=at, **{key: f"{at}.{key}" for key in said or ()}):
        score = said and Score(**said | {"flags": [ScoreFlag(flag) for flag in said["flags"]]})
        if sample is not None:
            scored = ScoredSample(sample=sample, score=score)
    return scored


def _started(start: RunStart) -> dict[str, Any]:
    plan = {field.name: thawed(getattr(start.plan, field.name)) for field in attrs.fields(RunPlan)}
    return {
        "label": start.label,
        "created_at": start.created_at,
        "identity": identity_document(start.identity),
        "suite": thawed(start.suite),
        "suite_sha256": start.suite_sha256,
        "plan": {**plan, "cache": start.plan.cache.value, "load": load_document(start.plan.load)},
        "inputs": [input_document(each) for each in start.inputs],
    }


def _scored(scored: ScoredSample) -> dict[str, Any]:
    score = scored.score
    return {
        "sample": sample_document(scored.sample),
        "score": score
        and {
            "value": score.value,
            "reason": score.reason,
            "flags": [flag.value for flag in score.flags],
        },
    }


def _ended(artifact: Artifact) -> dict[str, Any]:
    said = {key: getattr(artifact, key) for key in ENDED}
    return said | {"ended": artifact.ended.value}


def _read_start(data: Mapping[str, Any], faults: Faults) -> RunStart:
    made: dict[str, Any] = {"inputs": []}
    if "identity" in data:
        made["identity"] = read_identity(data["identity"], "$.identity", faults)
    if "plan" in data:
        made["plan"] = _read_plan(data["plan"], faults)
    for i, each in enumerate(data.get("inputs", ())):
        made["inputs"].append(read_input(each, f"$.inputs[{i}]", faults))
    same = {key: data[key] for key in ("label", "created_at", "suite") if key in data}
    places = {key: f"$.{key}" for key in START}
    start = faults.finish(lambda: RunStart(**same, **made), **places)
    if start.suite_sha256 != data["suite_sha256"]:
        problem = f"got {shown(data['suite_sha256'])}, expected that of the suite"
        faults.add("$.suite_sha256", f"{problem}, {start.suite_sha256!r}")
        faults.raise_any()
    return start


def _read_plan(said: Mapping[str, Any], faults: Faults) -> RunPlan | None:
    try:
        load = load_from(said["load"])
    except DocumentError as error:
        for path, problem in error.faults:
            faults.add(f"$.plan.load{path[1:]}", problem)
        return None
    made: dict[str, Any] = {**said, "cache": CacheMode(said["cache"]), "load": load}
    plan: RunPlan | None = None
    with faults.at("$.plan", **{key: f"$.plan.{key}" for key in said}):
        plan = RunPlan(**made)
    return plan  # noqa: RET504 - the block may end without one
