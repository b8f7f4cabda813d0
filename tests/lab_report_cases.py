"""Artifacts of runs of one and of two targets, for tests of what a report says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import artifact_cases
from vlmcore.lab.artifact_files import artifact_bytes, artifact_name
from vlmcore.lab.artifacts import Artifact, Ending, ScoredSample
from vlmcore.lab.events import Chunk, Sample, TokenSource, Usage
from vlmcore.lab.inputs import Input
from vlmcore.lab.loads import ClosedLoop
from vlmcore.lab.scoring.scores import Score

MS = 1_000_000
SUITE = {"name": "beach", "cases": [{"name": "dog", "prompt": "?"}, {"name": "cat", "prompt": "?"}]}


def sample(case: str, target: str, block: int, ms: float, **fields: Any) -> ScoredSample:
    """Measure a request whose first of three tokens took *ms*, and each other half of that."""
    usual: dict[str, Any] = {
        "prepared_ns": 2 * MS,
        "chunks": [Chunk(at_ns=round((1 + part / 2) * ms * MS), characters=1) for part in range(3)],
        "closed_ns": round(3 * ms * MS),
        "text": "dog",
        "finish_reason": "stop",
        "usage": Usage(source=TokenSource.MODEL, generated_tokens=3),
    }
    made = Sample(case=case, target=target, block=block, request_ns=0, **usual | fields)
    failed = made.failure is not None
    return ScoredSample(sample=made, score=None if failed else Score(value=1.0, reason="it is"))


def artifact(samples: list[ScoredSample], *names: str, **fields: Any) -> Artifact:
    """Make an artifact of targets of the same model."""
    targets = [artifact_cases.target(name=name) for name in names]
    start = artifact_cases.start(
        identity=artifact_cases.identity(targets=targets),
        suite=SUITE,
        inputs=[
            Input(target=name, case=case["name"], prompt_sha256="1" * 64)
            for name in names
            for case in SUITE["cases"]
        ],
        **fields,
    )
    return Artifact(
        start=start, samples=samples, ended=Ending.COMPLETE, planned=len(samples), wall_ns=9 * MS
    )


def written(folder: Path, made: Artifact) -> Path:
    data = artifact_bytes(made)
    path = folder / artifact_name(made.start.label, data)
    path.write_bytes(data)
    return path


def two(times: float, **fields: Any) -> Artifact:
    """Compare a target with one that takes *times* as long, over ten blocks."""
    samples = [
        sample(case, target, block, ms * (1 + block % 3 / 100), leg=leg)
        for block in range(10)
        for leg, (target, ms) in enumerate(
            (("old", 100.0), ("new", 100.0 * times), ("new", 100.0 * times), ("old", 100.0))
        )
        for case in ("dog", "cat")
    ]
    return artifact(samples, "old", "new", **fields)


def loaded(clients: int, *, dog: float, cat: float, blocks: int = 5, **plan: Any) -> Artifact:
    """Measure a target under a load; both cases take as long as is said, in milliseconds."""
    samples = [
        sample(case, "mine", block, ms)
        for block in range(blocks)
        for case, ms in (("dog", dog), ("cat", cat))
    ]
    known: dict[str, Any] = {"load": ClosedLoop(clients=clients), "goals": {"ttft/1": 20}}
    return artifact(samples, "mine", plan=artifact_cases.plan(**known | plan))
