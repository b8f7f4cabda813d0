"""Tests of `vlmcore.rollout.handoff`."""

from __future__ import annotations

import contextlib
import ctypes
import math
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safety_cases import JOINT, chunk, space
from vlmcore.contracts.embodiment import LimitsSource
from vlmcore.contracts.presets import find_embodiment
from vlmcore.errors import ContractError, UnsafeActionError
from vlmcore.rollout import ActionSink, hand_off
from vlmcore.safety import RefusalReason, SafetyGate, VettedChunk

OBSERVED_AT_S = 12.5  # what safety_cases says of its chunks


class Sink:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.accepted: list[VettedChunk] = []

    def accept(self, vetted: VettedChunk, /) -> None:
        self.accepted.append(vetted)


def vetted() -> VettedChunk:
    """Vet a step against a space."""
    gate = SafetyGate(space=space(JOINT), limits_source=LimitsSource.MANUFACTURER)
    return gate.vet(chunk([[0.05]]), last_command=[0.0])


def of_a_robot(source: LimitsSource) -> VettedChunk:
    """Vet a step of a robot whose limits come from *source*."""
    template = find_embodiment("LeRobot SO-100 / SO-101 template")
    robot = attrs.evolve(template, limits_source=source)
    came = chunk(np.zeros((1, 6)), *robot.actions.names)
    return SafetyGate(embodiment=robot).vet(came, last_command=np.zeros(6))


def refused(actions: VettedChunk, **more: Any) -> UnsafeActionError:
    """Try to hand on what is refused, and take the error."""
    sink = Sink()
    with pytest.raises(UnsafeActionError) as error:
        hand_off(actions, sink, **{"now_s": OBSERVED_AT_S, "max_age_s": 1.0, **more})
    assert [] == sink.accepted
    report = error.value.report
    assert (False, error.value.reason) == (report.safe_for_handoff, report.reason.value)
    assert actions.report.safe_for_handoff  # it was, when the gate looked
    return error.value


def test_vetted_actions_reach_the_sink_as_they_are() -> None:
    """
    Once, and nothing comes back.
    """
    sink, actions = Sink(), vetted()
    assert isinstance(sink, ActionSink)
    hand_off(actions, sink, now_s=OBSERVED_AT_S + 1, max_age_s=1.0)
    (accepted,) = sink.accepted
    assert actions is accepted


def test_s16_actions_that_are_too_old_are_refused() -> None:
    """
    "no action age, no observation age": at the age that is allowed they pass, after it they don't.
    """
    error = refused(vetted(), now_s=OBSERVED_AT_S + 1.25)
    assert RefusalReason.STALE.value == error.reason
    assert str(error).startswith(
        "stale: observed_at_s: got 1.25 s before now_s, expected at most 1 s; test, 1 x 1 values"
    )


def test_s16_actions_from_another_clock_are_refused() -> None:
    """
    What was observed in the future was observed by another clock; its age is not known.
    """
    error = refused(vetted(), now_s=OBSERVED_AT_S - 0.5)
    assert RefusalReason.OBSERVED_IN_FUTURE.value == error.reason
    assert "got 0.5 s after now_s, expected the same clock" in error.problem


def test_actions_within_the_limits_of_a_template_are_refused_unless_told() -> None:
    """
    Nobody promises them for the robot.
    """
    actions = of_a_robot(LimitsSource.TEMPLATE)
    error = refused(actions)
    assert RefusalReason.TEMPLATE_LIMITS.value == error.reason
    assert "allow_template=True" in str(error)

    sink = Sink()
    hand_off(actions, sink, now_s=OBSERVED_AT_S, max_age_s=1, allow_template=True)
    assert [actions] == sink.accepted


def test_limits_of_a_template_do_not_pass_as_those_of_a_space() -> None:
    """
    A gate of ``preset.actions`` alone does not know whose limits they are: it must be told.
    """
    template = find_embodiment("LeRobot SO-100 / SO-101 template").actions
    gate = SafetyGate(space=template)
    actions = gate.vet(chunk(np.zeros((1, 6)), *template.names), last_command=np.zeros(6))
    error = refused(actions)
    assert RefusalReason.LIMITS_UNKNOWN.value == error.reason
    assert str(error).startswith(
        "limits_unknown: limits_source: got a gate of a space alone, expected "
        "SafetyGate(limits_source=...) or one of an embodiment, or allow_template=True"
    )

    sink = Sink()
    hand_off(actions, sink, now_s=OBSERVED_AT_S, max_age_s=1, allow_template=True)
    assert [actions] == sink.accepted


def test_a_space_whose_limits_are_said_to_be_the_robots_needs_no_permission() -> None:
    """
    Somebody has said it, and answers for it.
    """
    sink = Sink()
    hand_off(vetted(), sink, now_s=OBSERVED_AT_S, max_age_s=1)
    assert 1 == len(sink.accepted)


@pytest.mark.parametrize("source", [LimitsSource.DATASET, LimitsSource.MANUFACTURER])
def test_limits_of_the_robot_itself_need_no_permission(source: LimitsSource) -> None:
    """
    They are what the actions have to keep.
    """
    sink = Sink()
    hand_off(of_a_robot(source), sink, now_s=OBSERVED_AT_S, max_age_s=1)
    assert 1 == len(sink.accepted)


class Pretender:
    """Says that it is a VettedChunk."""

    __class__ = VettedChunk  # type: ignore[assignment]
    observed_at_s = OBSERVED_AT_S
    limits_source = None


@pytest.mark.parametrize(
    "actions", [chunk([[0.0]]), [[0.0]], None, {"validated": True}, Pretender(), VettedChunk]
)
def test_s17_what_the_gate_did_not_vet_is_never_handed_on(actions: Any) -> None:
    """
    A flag at its side, or a class that is only claimed, makes nothing safe.
    """
    sink = Sink()
    with pytest.raises(ContractError, match=r"^vetted: got .*, expected a VettedChunk: SafetyGate"):
        hand_off(actions, sink, now_s=OBSERVED_AT_S, max_age_s=1)
    assert [] == sink.accepted


@pytest.mark.parametrize("sink", [None, object(), Sink, print])
def test_a_sink_accepts(sink: Any) -> None:
    """
    A class instead of an object, or a function, is a mistake that is named.
    """
    with pytest.raises(ContractError, match=r"^sink: got .*, expected an ActionSink"):
        hand_off(vetted(), sink, now_s=OBSERVED_AT_S, max_age_s=1)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, "1", None, True, 1 + 0j])
@pytest.mark.parametrize("field", ["now_s", "max_age_s"])
def test_times_are_finite_numbers(field: str, bad: Any) -> None:
    """
    NaN would be neither too old nor too young.
    """
    sink = Sink()
    with pytest.raises(ContractError, match=rf"^{field}: got"):
        hand_off(vetted(), sink, **{"now_s": OBSERVED_AT_S, "max_age_s": 1.0, field: bad})
    assert [] == sink.accepted


@pytest.mark.parametrize("bad", [0, -0.0, -1.0])
def test_the_age_that_is_allowed_is_above_zero(bad: float) -> None:
    """
    Nothing is as young as that.
    """
    with pytest.raises(ContractError, match=r"^max_age_s: got .*, expected a finite number above"):
        hand_off(vetted(), Sink(), now_s=OBSERVED_AT_S, max_age_s=bad)


def test_permission_for_templates_is_given_in_so_many_words() -> None:
    """
    Not by a text that happens to be true.
    """
    with pytest.raises(ContractError, match=r"^allow_template: got 'no', expected True or False"):
        hand_off(vetted(), Sink(), now_s=OBSERVED_AT_S, max_age_s=1, allow_template="no")  # type: ignore[arg-type]


def test_numbers_of_numpy_are_times() -> None:
    """
    Recorders keep them so.
    """
    sink = Sink()
    hand_off(vetted(), sink, now_s=np.float32(13.0), max_age_s=np.int64(1))  # type: ignore[arg-type]
    assert 1 == len(sink.accepted)


def test_what_the_sink_raises_reaches_the_caller() -> None:
    """
    As it is: what a controller says is nothing that we know better.
    """

    class Broken:
        def accept(self, _: VettedChunk, /) -> None:
            raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        hand_off(vetted(), Broken(), now_s=OBSERVED_AT_S, max_age_s=1)


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(1e-3, 1e3))
def test_exactly_what_is_of_the_right_age_is_handed_on(now_s: float, max_age_s: float) -> None:
    """
    Whatever the clock says.
    """
    sink, age = Sink(), now_s - OBSERVED_AT_S
    with contextlib.suppress(UnsafeActionError):
        hand_off(vetted(), sink, now_s=now_s, max_age_s=max_age_s)
    assert bool(sink.accepted) is (0 <= age <= max_age_s)


def test_a_forged_chunk_is_refused_as_one_that_no_gate_made() -> None:
    """
    It has no values, and was told of by an AttributeError.
    """
    forged: VettedChunk = object.__new__(VettedChunk)
    half: VettedChunk = object.__new__(VettedChunk)
    for field in VettedChunk.__slots__[:-1]:
        object.__setattr__(half, field, getattr(vetted(), field))
    sink = Sink()
    for actions in (forged, half):
        with pytest.raises(ContractError, match="vetted: got a VettedChunk that no gate made"):
            hand_off(actions, sink, now_s=OBSERVED_AT_S, max_age_s=1)
    assert [] == sink.accepted


def test_values_that_somebody_wrote_to_are_not_handed_on() -> None:
    """
    torch.from_dlpack(vetted.values).mul_(1000) reached the sink.
    """
    altered = vetted()
    ctypes.memset(altered.values.ctypes.data, 0x40, altered.values.nbytes)  # it does not ask
    assert altered.values[0, 0] > 1
    error = refused(altered)
    assert "altered" == error.reason
    assert "torch" in str(error)
