"""Artifacts for tests: small, whole, and with nothing unknown in them."""

from __future__ import annotations

from typing import Any

from vlmcore.lab.artifacts import Artifact, Ending, RunStart, ScoredSample
from vlmcore.lab.events import Chunk, Phase, Sample, TokenSource, Usage
from vlmcore.lab.identity import Accelerator, Host, Identity, Package, PackageSource
from vlmcore.lab.inputs import Input, Media
from vlmcore.lab.loads import ClosedLoop
from vlmcore.lab.run_plans import CacheMode, RunPlan
from vlmcore.lab.scoring.scores import Score
from vlmcore.lab.targets import Checkpoint, CheckpointFile, Server, Target, TargetKind

SUITE = {"name": "beach", "cases": [{"name": "dog", "prompt": "What is it?"}]}


def target(**fields: Any) -> Target:
    """Make a target of which all is known."""
    known = {
        "name": "mine",
        "precision": "float32",
        "options": {"max_tokens": 96},
        "checkpoint": Checkpoint(
            model="embedded",
            files=[CheckpointFile(name="model.safetensors", size_bytes=5, sha256="5" * 64)],
        ),
    }
    return Target(**known | fields)


def server_target(**fields: Any) -> Target:
    """Make a target behind a server of which all is known."""
    server = Server(address="http://127.0.0.1:8000/v1", version="0.5.10", models=["mine"])
    return target(kind=TargetKind.SERVER, server=server, **fields)


def identity(**fields: Any) -> Identity:
    """Make an identity of which all is known."""
    known = {
        "package": Package(
            version="0.1", source=PackageSource.REPOSITORY, commit="c" * 40, has_changes=False
        ),
        "packages": {"numpy": "2.4.1", "torch": "2.9.0"},
        "host": Host(
            system="Linux 6.1",
            machine="x86_64",
            python="CPython 3.11.2",
            processor="A processor",
            cores=2,
            memory_bytes=1 << 33,
            accelerators=[Accelerator(name="RTX 3090", memory_bytes=24 << 30)],
        ),
        "targets": [target()],
    }
    return Identity(**known | fields)


def media(**fields: Any) -> Media:
    """Make an image that was sent smaller than it is."""
    known = {
        "stored_height_px": 1365,
        "stored_width_px": 2048,
        "height_px": 299,
        "width_px": 448,
        "pixels_sha256": "2" * 64,
        "encoder": "JPEG, quality 90, Pillow 12.0",
        "sent_sha256": "3" * 64,
    }
    return Media(**known | fields)


def plan(**fields: Any) -> RunPlan:
    """Make a plan in which all is said."""
    known = {
        "load": ClosedLoop(clients=1),
        "cache": CacheMode.UNIQUE,
        "runs_per_case": 3,
        "warm_ups_per_case": 1,
        "generation": {"max_new_tokens": 96, "temperature": 0.0, "seed": 0},
        "deadline_s": 60,
    }
    return RunPlan(**known | fields)


def start(**fields: Any) -> RunStart:
    """Make the beginning of a run with one case."""
    known = {
        "label": "baseline",
        "created_at": "2026-12-01T08:00:00Z",
        "identity": identity(),
        "suite": SUITE,
        "plan": plan(),
        "inputs": [Input(target="mine", case="dog", prompt_sha256="1" * 64, media=[media()])],
    }
    return RunStart(**known | fields)


def scored(number: int = 0, *, score: float | None = 1.0, **fields: Any) -> ScoredSample:
    """Make the request *number* of a run."""
    at_ns = number * 1_000_000_000
    known = {
        "case": "dog",
        "target": "mine",
        "block": number,
        "request_ns": at_ns,
        "prepared_ns": at_ns + 10,
        "sent_ns": at_ns + 20,
        "headers_ns": at_ns + 30,
        "chunks": [Chunk(at_ns=at_ns + 40, characters=2), Chunk(at_ns=at_ns + 90, characters=4)],
        "closed_ns": at_ns + 100,
        "text": "a dog.",
        "finish_reason": "stop",
        "usage": Usage(
            source=TokenSource.SERVER, prompt_tokens=130, cached_tokens=0, generated_tokens=3
        ),
        "peak_memory_bytes": 1 << 30,
    }
    made = None if score is None else Score(value=score, reason="it names the dog")
    return ScoredSample(sample=Sample(**known | fields), score=made)


def artifact(count: int = 3, **fields: Any) -> Artifact:
    """Make a whole run of *count* samples and a warm-up."""
    known = {
        "start": start(),
        "warm_ups": [scored(0, phase=Phase.WARM_UP)],
        "samples": [scored(i + 1) for i in range(count)],
        "ended": Ending.COMPLETE,
        "planned": count,
        "wall_ns": 9_000_000_000,
    }
    return Artifact(**known | fields)
