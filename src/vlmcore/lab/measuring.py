"""Measuring a suite: targets are opened, a plan is done, and its evidence is written."""

from __future__ import annotations

import datetime as dt
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import attrs

from vlmcore.errors import ContractError
from vlmcore.lab.artifacts import Ending, RunStart
from vlmcore.lab.host_facts import find_devices, find_host
from vlmcore.lab.identity import Identity
from vlmcore.lab.inputs import Input
from vlmcore.lab.journal import Journal
from vlmcore.lab.opening import OpenedTarget, TargetChoice, open_target
from vlmcore.lab.package_facts import find_package, find_versions
from vlmcore.lab.preparing import input_of, shown_at
from vlmcore.lab.run_plans import CacheMode, RunPlan
from vlmcore.lab.running import Runner, RunProgress, RunTarget
from vlmcore.lab.suite_documents import suite_document
from vlmcore.lab.suites import Suite
from vlmcore.vlm.generation import GenerationOptions
from vlmcore.vlm.loading import load_predictor
from vlmcore.vlm.predictor import Predictor

__all__ = ["Measured", "measure_suite"]

_GENERATION = ("max_new_tokens", "temperature", "seed")


@attrs.frozen(kw_only=True)
class Measured:
    """
    What a run left behind.

    Attributes:
        path: The artifact.
        ended: How the run ended.
        reason: Why.
    """

    path: Path
    ended: Ending
    reason: str


class _Clock:
    """The clock of a run that has not begun: targets are opened before it does."""

    def __init__(self) -> None:
        self.runner: Runner | None = None

    def __call__(self) -> int:
        return 0 if self.runner is None else self.runner.clock_ns()


def measure_suite(
    suite: Suite,
    choices: Sequence[TargetChoice],
    plan: RunPlan,
    *,
    folder: str | os.PathLike[str],
    label: str,
    progress: RunProgress | None = None,
    stop: threading.Event | None = None,
    load: Callable[..., Predictor] = load_predictor,
) -> Measured:
    """
    Ask every target every case, as a plan says, and write the artifact of it.

    Each request is on the disk before its figures count. A run that is killed leaves its journal,
    of which `vlmcore.lab.recovery.finish_journal` makes the artifact.

    Args:
        suite: The suite, with its folder.
        choices: The targets; several are asked in turn, as ABBA.
        plan: What is to be done.
        folder: Where the artifact is written; it must exist.
        label: What its file is called by.
        progress: Is told of each request.
        stop: Once set, nothing new is asked.
        load: What loads a model of this machine.

    Raises:
        ContractError: If an argument is not as described.
        ArtifactError: If the artifact cannot be written: before anything is asked, as far as that
            can be known then.
        MediaError: If an image or a video cannot be read.
        VlmcoreError: If a target cannot be opened.
        MissingDependencyError: If a package is not installed that the suite or a target needs.
    """
    generation = _generation(plan)
    clock = _Clock()
    with ExitStack() as stack:
        opened = []
        for choice in choices:
            target = open_target(
                choice,
                generation=generation,
                deadline_s=plan.deadline_s,
                streamed=plan.streamed,
                keeps=plan.cache is CacheMode.WARM_PREFIX,
                clock_ns=clock,
                load=load,
            )
            opened.append(stack.enter_context(target))
        edges = {choice.name: choice.longest_edge_px for choice in choices}
        start = RunStart(
            label=label,
            created_at=_now(),
            identity=_identity(opened),
            suite=suite_document(suite),
            plan=plan,
            inputs=tuple(_inputs(suite, opened, edges)),
        )
        runner = Runner(suite, plan, _asked(opened, edges), stop=stop, progress=progress)
        secrets = tuple(secret for each in opened for secret in each.secrets)
        journal = Journal(folder, start, planned=runner.planned, secrets=secrets)
        stack.enter_context(journal)
        clock.runner = runner
        ended, reason = runner.run(journal)
        path = journal.finish(ended, reason=reason, wall_ns=runner.clock_ns())
    return Measured(path=path, ended=ended, reason=reason)


def _generation(plan: RunPlan) -> GenerationOptions:
    unknown = sorted({*plan.generation} - {*_GENERATION})
    if unknown:
        raise ContractError("generation", f"got {unknown}, expected of {', '.join(_GENERATION)}")
    # An answer that falls into a loop is no answer, and how long it took is no figure to improve.
    return GenerationOptions(**plan.generation, stop_on_repetition=False)


def _asked(opened: Sequence[OpenedTarget], edges: Mapping[str, int | None]) -> list[RunTarget]:
    return [
        RunTarget(
            name=each.facts.name,
            asker=each.asker,
            options=each.generation,
            longest_edge_px=edges[each.facts.name],
        )
        for each in opened
    ]


def _now() -> str:
    now = dt.datetime.now(dt.timezone.utc)
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def _identity(opened: Sequence[OpenedTarget]) -> Identity:
    package, of_package = find_package()
    host, of_host = find_host(find_devices())
    of_targets = {
        f"targets[{i}].{place}": why
        for i, each in enumerate(opened)
        for place, why in each.unknown.items()
    }
    return Identity(
        package=package,
        packages=find_versions(),
        host=host,
        targets=tuple(each.facts for each in opened),
        unknown={**of_package, **of_host, **of_targets},
    )


def _inputs(
    suite: Suite, opened: Sequence[OpenedTarget], edges: Mapping[str, int | None]
) -> Iterator[Input]:
    """Look at each image once for each target, one at a time: none is kept."""
    for case in suite.cases:
        for each in opened:
            name = each.facts.name
            yield input_of(suite, shown_at(case, edges[name]), target=name, rules=each.rules)
