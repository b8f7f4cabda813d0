"""
The evidence of a run: all that it was made with, and every sample with its whole answer.

Nothing in it is a figure that was worked out: figures are made from the samples, again by whoever
reads them. It is kept by `vlmcore.lab.artifact_files` in a form in which every edit can be found.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from typing import Any

import attrs

from vlmcore._arguments import require_kind, shown
from vlmcore._arrays import as_tuple, require_member, require_name
from vlmcore._copying import thawed, through_constructor
from vlmcore._json_values import frozen_object
from vlmcore.errors import ContractError
from vlmcore.lab._field_checks import require_all
from vlmcore.lab.canonical import digest_of
from vlmcore.lab.events import Phase, Sample
from vlmcore.lab.identity import Identity
from vlmcore.lab.inputs import Input
from vlmcore.lab.run_plans import RunPlan
from vlmcore.lab.scoring.scores import Score
from vlmcore.limits import ArtifactLimits, SampleLimits, require_at_most

__all__ = ["Artifact", "Ending", "RunStart", "ScoredSample", "require_label"]

_LIMITS = ArtifactLimits()
_MOST_NS = SampleLimits().max_ns
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?Z")


class Ending(enum.Enum):
    """How a run ended."""

    COMPLETE = "complete"  # all that was planned was asked
    STOPPED = "stopped"  # too many requests failed
    CANCELLED = "cancelled"  # somebody ended it
    KILLED = "killed"  # it ended without a word: what is there was made from its journal


@attrs.frozen(kw_only=True)
class ScoredSample:
    """
    One request, and how good its answer was.

    Attributes:
        sample: What was measured.
        score: How good the answer was; ``None`` of a request that failed, or a case without an
            evaluator.

    Raises:
        ContractError: If a field is not as described.
    """

    sample: Sample
    score: Score | None = None

    def __attrs_post_init__(self) -> None:
        require_kind("sample", self.sample, Sample)
        if self.score is not None:
            require_kind("score", self.score, Score)
            if self.sample.failure is not None:
                raise ContractError("score", "got one of a request that failed, expected None")


@attrs.frozen(kw_only=True)
class RunStart:
    """
    All of a run that is known before its first request.

    Attributes:
        label: A name for people, which the file is called by: letters, digits, ``.``, ``_``, ``-``.
        created_at: When it began, in UTC, as ``"2026-12-01T08:00:00Z"``.
        identity: What it was made with.
        suite: The suite as a document.
        suite_sha256: Its digest, `vlmcore.lab.suite_documents.suite_digest`; it is made here.
        plan: What it was to do.
        inputs: What each target was given for each case.
        asked: Each target with each case that it was given; it is made here.

    Raises:
        ContractError: If a field is not as described, or an input is of no target or there twice.
        LimitExceededError: If there are too many inputs.
        MissingDependencyError: If rfc8785 is not installed.
    """

    label: str
    created_at: str
    identity: Identity
    suite: Mapping[str, Any] = attrs.field(hash=False, repr=False)
    suite_sha256: str = attrs.field(init=False)
    plan: RunPlan
    inputs: tuple[Input, ...] = attrs.field(converter=as_tuple, repr=False)
    asked: frozenset[tuple[str, str]] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        require_label(self.label)
        if not isinstance(self.created_at, str) or not _MOMENT.fullmatch(self.created_at):
            expected = "expected a time in UTC, as 2026-12-01T08:00:00Z"
            raise ContractError("created_at", f"got {shown(self.created_at)}, {expected}")
        require_kind("identity", self.identity, Identity)
        object.__setattr__(self, "suite", frozen_object(self.suite, field="suite"))
        object.__setattr__(self, "suite_sha256", digest_of(thawed(self.suite)))
        require_kind("plan", self.plan, RunPlan)
        require_all("inputs", self.inputs, Input)
        most = _LIMITS.max_cases * len(self.identity.targets)
        require_at_most("max_cases", len(self.inputs), most)
        asked = frozenset((given.target, given.case) for given in self.inputs)
        object.__setattr__(self, "asked", asked)
        targets = {target.name for target in self.identity.targets}
        strangers = sorted({given.target for given in self.inputs} - targets)
        if strangers or len(self.asked) < len(self.inputs):
            came = f"got some of {strangers[:3]}" if strangers else "got a case twice"
            raise ContractError("inputs", f"{came}, expected each case of each target once")

    __reduce__ = through_constructor

    def require_fits(self, sample: Sample) -> None:
        """
        Require a sample of a case and a target that this run has.

        Raises:
            ContractError: If it is of another.
        """
        if not any(
            (sample.target, sample.case) == (each.target, each.case) for each in self.inputs
        ):
            raise ContractError(
                "sample",
                f"got the case {sample.case!r} of {sample.target!r}, expected one of the inputs",
            )


@attrs.frozen(kw_only=True)
class Artifact:
    """
    The evidence of a run.

    Attributes:
        start: All that was known before its first request.
        warm_ups: Requests that are in no figure.
        samples: The measured requests, all of one phase: cold starts never stand beside others.
        ended: How it ended.
        reason: Why it ended so, for people; may be empty.
        planned: How many samples it was to have, warm-ups not counted.
        wall_ns: How long it took, in nanoseconds; ``None`` where nobody could tell.

    Raises:
        ContractError: If a field is not as described, samples of two phases are mixed, or one is of
            a case or target that the run does not have.
        LimitExceededError: If there are too many samples.
    """

    start: RunStart
    warm_ups: tuple[ScoredSample, ...] = attrs.field(default=(), converter=as_tuple, repr=False)
    samples: tuple[ScoredSample, ...] = attrs.field(converter=as_tuple, repr=False)
    ended: Ending
    reason: str = ""
    planned: int
    wall_ns: int | None = None

    def __attrs_post_init__(self) -> None:
        require_kind("start", self.start, RunStart)
        require_member(Ending, ended=self.ended)
        require_name(
            "reason", self.reason, max_characters=_LIMITS.max_name_characters, may_be_empty=True
        )
        for field in ("planned", "wall_ns"):
            value = getattr(self, field)
            if value is None and field == "wall_ns":
                continue
            if type(value) is not int or not 0 <= value <= _MOST_NS:
                raise ContractError(field, f"got {shown(value)}, expected a whole number from 0")
        self._check_samples()

    def _check_samples(self) -> None:
        for field in ("warm_ups", "samples"):
            each = getattr(self, field)
            require_all(field, each, ScoredSample)
            require_at_most("max_requests", len(each), SampleLimits().max_requests)
        phases = {each.sample.phase for each in self.samples}
        if len(phases) > 1 or Phase.WARM_UP in phases:
            names = sorted(phase.value for phase in phases)
            raise ContractError("samples", f"got {names}, expected all steady or all cold starts")
        warmed = {each.sample.phase for each in self.warm_ups}
        if warmed - {Phase.WARM_UP} or (warmed and phases == {Phase.COLD_START}):
            names = sorted(phase.value for phase in warmed)
            raise ContractError("warm_ups", f"got {names}, expected warm-ups, none of cold starts")
        for each in (*self.warm_ups, *self.samples):
            self.start.require_fits(each.sample)

    __reduce__ = through_constructor

    @property
    def failures(self) -> int:
        """How many samples failed."""
        return sum(each.sample.failure is not None for each in self.samples)

    @property
    def unknown(self) -> dict[str, str]:
        """Each place that nobody could tell of, and why; with one there is no verified badge."""
        found = {f"identity.{at}": why for at, why in self.start.identity.unknown.items()}
        if self.wall_ns is None:
            found["wall_ns"] = "was not told"
        generation = self.start.plan.generation
        for key in ("max_new_tokens", "temperature", "seed"):
            if generation.get(key) is None:
                found[f"plan.generation.{key}"] = "was not said"
        ended = [each.sample for each in self.samples if each.sample.failure is None]
        gaps = {
            "finish_reason": sum(sample.finish_reason is None for sample in ended),
            "usage.generated_tokens": sum(sample.generated_tokens is None for sample in ended),
            "chunks": sum(bool(s.text or s.reasoning) and not s.chunks for s in ended),
        }
        for field, count in gaps.items():
            if count:
                found[f"samples.{field}"] = f"was not told in {count} of {len(ended)} samples"
        return found

    @property
    def cache_is_known(self) -> bool:
        """Whether each sample says how much of it the target had kept; if not, no speed says so."""
        ended = [each.sample for each in self.samples if each.sample.failure is None]
        return all(s.usage is not None and s.usage.cached_tokens is not None for s in ended)


def require_label(label: Any) -> None:
    """
    Require a label that can be the name of a file anywhere, before anything is paid for.

    Raises:
        ContractError: If it is none, as ``"a/b"`` and ``"../x"``.

    Example:
        >>> require_label("../x")
        Traceback (most recent call last):
        ...
        vlmcore.errors.ContractError: label: got '../x', expected 1 to 80 letters, digits, '.', ...
    """
    if not isinstance(label, str) or not _LABEL.fullmatch(label):
        expected = "expected 1 to 80 letters, digits, '.', '_' or '-', the first a letter or digit"
        raise ContractError("label", f"got {shown(label)}, {expected}")
