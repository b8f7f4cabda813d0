"""Hypothesis strategies for what happens with chunks over time: replans, episodes, reports."""

from __future__ import annotations

from vlmcore._optional import optional_dependency
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.limits import ContractLimits
from vlmcore.rollout.episode_calls import EpisodeFailure, PolicyCall, digest_of
from vlmcore.rollout.episode_frames import EncodedFrame, FrameEncoding, encode_frames
from vlmcore.rollout.episodes import EpisodeHeader, EpisodeStep
from vlmcore.rollout.freshness import MaxAges, TimedObservation
from vlmcore.rollout.replan import ReplanReport
from vlmcore.safety.report import SafetyReport
from vlmcore.safety.vetted import VettedChunk
from vlmcore.testing._observation_strategies import observations
from vlmcore.testing._plain_strategies import finite_numbers, names, texts
from vlmcore.testing._report_strategies import open_loop_reports, shadow_reports
from vlmcore.testing._safety_strategies import outcomes
from vlmcore.testing.contract_strategies import action_chunks, embodiments, json_objects

with optional_dependency("testing", "hypothesis"):
    from hypothesis import strategies as st

__all__ = [
    "encoded_frames",
    "episode_failures",
    "episode_headers",
    "episode_steps",
    "episodes",
    "max_ages",
    "open_loop_reports",
    "policy_calls",
    "replan_reports",
    "shadow_reports",
    "timed_observations",
]

_LIMITS = ContractLimits()


@st.composite
def replan_reports(draw: st.DrawFn) -> ReplanReport:
    """
    What a broker may say of a plan that took over from another; its numbers fit together.

    Args:
        draw: Given by hypothesis.

    Example:
        >>> from hypothesis import find
        >>> find(replan_reports(), lambda report: report.transition_steps_applied == 2).new_horizon
        2
    """
    previous = draw(st.integers(1, _LIMITS.max_horizon))
    new = draw(st.integers(1, _LIMITS.max_horizon))
    executed, output = draw(st.integers(0, previous)), draw(st.integers(1, new))
    requested = draw(st.integers(0, _LIMITS.max_horizon))
    return ReplanReport(
        previous_source=draw(names()),
        new_source=draw(names()),
        previous_horizon=previous,
        new_horizon=new,
        executed_steps=executed,
        remaining_previous_steps=previous - executed,
        transition_steps_requested=requested,
        transition_steps_applied=min(requested, previous - executed, output),
        output_horizon=output,
    )


def max_ages() -> st.SearchStrategy[MaxAges]:
    """
    How old things may be, some with ages for single cameras.

    Example:
        >>> from hypothesis import find
        >>> find(max_ages(), lambda ages: ages.unchanged_s is not None).unchanged_s
        1.0
    """
    ages_s = st.floats(1e-3, 1e3)
    return st.builds(
        MaxAges,
        observation_s=ages_s,
        chunk_s=ages_s,
        cameras_s=st.dictionaries(names(), ages_s, max_size=3),
        unchanged_s=st.none() | ages_s,
    )


@st.composite
def timed_observations(
    draw: st.DrawFn, *, embodiment: Embodiment | None = None
) -> TimedObservation:
    """
    Observations with the times of all, some or none of their cameras.

    Args:
        draw: Given by hypothesis.
        embodiment: As for `vlmcore.testing.contract_strategies.observations`.
    """
    seen = draw(observations(embodiment=embodiment))
    known = draw(st.sets(st.sampled_from(sorted(seen.images))))
    ages_s = st.floats(0.0, 10.0)
    times = {name: seen.captured_at_s - draw(ages_s) for name in seen.images if name in known}
    return TimedObservation(observation=seen, captured_at_s=times)


@st.composite
def encoded_frames(draw: st.DrawFn) -> EncodedFrame:
    """
    Frames as an episode keeps them, as JPEG or PNG; Pillow encodes them.

    Args:
        draw: Given by hypothesis.

    Example:
        >>> from hypothesis import find
        >>> find(encoded_frames(), lambda frame: frame.encoding is FrameEncoding.PNG).frame_index
        0
    """
    seen = draw(observations())
    encoding = draw(st.sampled_from(FrameEncoding))
    frames = encode_frames(seen, encoding, newest_only=False)
    return draw(st.sampled_from([each for camera in frames.values() for each in camera]))


@st.composite
def policy_calls(draw: st.DrawFn, *, seen: Observation | None = None) -> PolicyCall:
    """
    How a policy was asked.

    Args:
        draw: Given by hypothesis.
        seen: What it was shown; drawn unless given.
    """
    shown = draw(observations()) if seen is None else seen
    return PolicyCall(digest=digest_of(shown), took_s=draw(st.floats(0.0, 1e3)))


@st.composite
def episode_headers(draw: st.DrawFn, *, embodiment: Embodiment | None = None) -> EpisodeHeader:
    """
    The first lines of episodes, with and without what need not be said.

    Args:
        draw: Given by hypothesis.
        embodiment: Whose they are; drawn unless given.
    """
    said = st.just("") | names()
    return EpisodeHeader(
        embodiment=draw(embodiments(max_dims=4)) if embodiment is None else embodiment,
        made_by=draw(said),
        made_at=draw(said),
        metadata=draw(json_objects()),
    )


@st.composite
def episode_steps(
    draw: st.DrawFn, *, embodiment: Embodiment | None = None, frames: bool = True
) -> EpisodeStep:
    """
    Recorded steps: hostile chunks too, and what a real gate made of them under any remedy.

    Args:
        draw: Given by hypothesis.
        embodiment: Whose they are; drawn unless given.
        frames: Whether some have frames, which Pillow encodes.

    Example:
        >>> from hypothesis import Phase, find, settings
        >>> any_will_do = settings(phases=[Phase.generate])  # the simplest takes long to find
        >>> refused = find(
        ...     episode_steps(frames=False), lambda step: step.vetted is None, settings=any_will_do
        ... )
        >>> refused.report.safe_for_handoff
        False
    """
    robot = draw(embodiments(max_dims=4)) if embodiment is None else embodiment
    chunk = draw(action_chunks(space=robot.actions, hostile=draw(st.booleans())))
    came, told = draw(outcomes(robot, chunk))
    assert isinstance(came.report, SafetyReport)
    vetted = came.values if isinstance(came, VettedChunk) else None
    seen = draw(observations(embodiment=robot))
    encodings = st.sampled_from((None, *FrameEncoding)) if frames else st.none()
    encoding = draw(encodings)
    return EpisodeStep(
        at_s=draw(finite_numbers()),
        observation=seen.summary(),
        chunk=chunk,
        report=came.report.summary(),
        vetted=vetted,
        executed_steps=0 if vetted is None else draw(st.integers(0, len(vetted))),
        frames={} if encoding is None else encode_frames(seen, encoding, newest_only=False),
        call=draw(st.none() | policy_calls(seen=seen)),
        **told,
    )


@st.composite
def episode_failures(draw: st.DrawFn, *, embodiment: Embodiment | None = None) -> EpisodeFailure:
    """
    Recorded calls that a policy did not answer.

    Args:
        draw: Given by hypothesis.
        embodiment: Whose they are; drawn unless given.
    """
    seen = draw(observations(embodiment=embodiment))
    return EpisodeFailure(
        at_s=draw(finite_numbers()),
        observation=seen.summary(),
        error=draw(texts(min_size=1).filter(str.strip)),
        call=draw(st.none() | policy_calls(seen=seen)),
    )


@st.composite
def episodes(
    draw: st.DrawFn, *, embodiment: Embodiment | None = None, max_lines: int = 4
) -> tuple[EpisodeHeader, tuple[EpisodeStep | EpisodeFailure, ...]]:
    """
    Recorded episodes: whose they are, and steps and failed calls in any order.

    `vlmcore.rollout.EpisodeWriter` writes them, and `EpisodeReader` gives them back as they are.

    Args:
        draw: Given by hypothesis.
        embodiment: Whose they are; drawn unless given.
        max_lines: Steps and failures at the most.

    Example:
        >>> from hypothesis import Phase, find, settings
        >>> any_will_do = settings(phases=[Phase.generate])  # the simplest takes long to find
        >>> two_lines = lambda episode: len(episode[1]) == 2
        >>> header, lines = find(episodes(max_lines=2), two_lines, settings=any_will_do)
        >>> steps = [line for line in lines if isinstance(line, EpisodeStep)]
        >>> all(header.require_fits(step) is None for step in steps)
        True
    """
    header = draw(episode_headers(embodiment=embodiment))
    robot = header.embodiment
    lines = episode_failures(embodiment=robot) | episode_steps(embodiment=robot)
    return header, tuple(draw(st.lists(lines, max_size=max_lines)))
