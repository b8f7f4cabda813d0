"""Suites on disk, plans, and targets that answer as a test says, for tests of runs of the lab."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from vlmcore.lab.asking.requests import Request
from vlmcore.lab.events import Chunk, Failure, FailureKind, Phase, Sample, TokenSource, Usage
from vlmcore.lab.loads import ClosedLoop
from vlmcore.lab.run_plans import CacheMode, RunPlan
from vlmcore.lab.suite_files import read_suite
from vlmcore.lab.suites import Suite
from vlmcore.media.encoding import encode_png

COLOURS = {"red": (255, 0, 0), "green": (0, 128, 0), "blue": (0, 0, 255)}


def suite_file(folder: Path, *names: str, **more: Any) -> Path:
    """Write a suite that asks for the colour of pictures of one colour."""
    for name in names:
        pixels = np.full((40, 60, 3), COLOURS[name], np.uint8)
        (folder / f"{name}.png").write_bytes(encode_png(pixels))
    cases = [
        {
            "name": name,
            "image": f"{name}.png",
            "prompt": "Which colour is it?",
            "evaluator": "keywords",
            "expected": [name],
            **more,
        }
        for name in names
    ]
    path = folder / "colours.json"
    document = {"schema": "comfyui-vlm/lab-suite", "version": 1, "name": "colours", "cases": cases}
    path.write_text(json.dumps(document))
    return path


def colours(folder: Path, *names: str, **more: Any) -> Suite:
    """Read such a suite."""
    return read_suite(suite_file(folder, *(names or COLOURS), **more))


def plan(**fields: Any) -> RunPlan:
    """Make a plan of which only what matters is said."""
    usual: dict[str, Any] = {
        "load": ClosedLoop(clients=1),
        "cache": CacheMode.COLD,
        "runs_per_case": 2,
        "generation": {"max_new_tokens": 16, "temperature": 0.0},
        "deadline_s": 20,
    }
    return RunPlan(**usual | fields)


class ScriptedAsker:
    """
    A target without a model: looks at the picture and says its colour, or fails as it is told.
    """

    def __init__(self, answer: Callable[[Request], str | None] | None = None) -> None:
        self.asked: list[Request] = []
        self.is_closed = False
        self._answer = answer or (lambda request: f"It is {request.case}.")

    def ask(self, request: Request) -> Sample:
        self.asked.append(request)
        began_ns = request.clock_ns()
        request.prompt()
        prepared_ns = request.clock_ns()
        text = self._answer(request)
        now_ns = request.clock_ns()
        came = text is not None
        return Sample(
            case=request.case,
            target=request.target,
            phase=request.phase,
            block=request.block,
            leg=request.leg,
            request_ns=began_ns,
            prepared_ns=prepared_ns,
            chunks=[Chunk(at_ns=now_ns, characters=len(text))] if text else [],
            closed_ns=request.clock_ns(),
            text=text or "",
            finish_reason="stop" if came else None,
            usage=Usage(source=TokenSource.MODEL, generated_tokens=3) if came else None,
            failure=None if came else Failure(kind=FailureKind.GENERATION, message="told to"),
        )

    def close(self) -> None:
        self.is_closed = True

    @property
    def measured(self) -> list[Request]:
        return [request for request in self.asked if request.phase is not Phase.WARM_UP]
