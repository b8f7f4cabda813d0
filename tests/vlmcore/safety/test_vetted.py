"""Tests of `vlmcore.safety.vetted`: nobody but the gate makes a vetted chunk."""

from __future__ import annotations

import ast
import copy
import ctypes
import hashlib
import pickle

import attrs
import numpy as np
import pytest

from architecture.tree import module_files, module_name, parse
from safety_cases import GRIPPER, JOINT, SLIDE, chunk, joint, space
from vlmcore.contracts.actions import ActionChunk, Stream
from vlmcore.contracts.embodiment import ActionDim, Reference
from vlmcore.errors import ContractError, UnsafeActionError
from vlmcore.safety import RefusalReason, Remedy, SafetyGate, VettedChunk, ViolationKind


@pytest.fixture
def vetted() -> VettedChunk:
    return SafetyGate(space=space(JOINT)).vet(chunk([[0.1], [0.2]]), last_command=[0.0])


@pytest.mark.parametrize(
    "trick",
    [
        lambda _: VettedChunk(),
        lambda came: VettedChunk(values=came.values, names=came.names),
        lambda _: VettedChunk.__new__(VettedChunk),
        lambda came: attrs.evolve(came, values=np.ones((2, 1))),
        lambda came: came.__replace__(values=np.ones((2, 1))),
        lambda _: type("Mine", (VettedChunk,), {}),
        pickle.dumps,
        lambda came: came.__reduce_ex__(4),
        lambda came: came.__reduce__(),
        lambda came: came.__setstate__({"values": np.ones((2, 1))}),
    ],
)
def test_only_the_gate_makes_a_vetted_chunk(trick, vetted: VettedChunk) -> None:
    """
    Not a call, nor a copy with other values, a subclass, or a pickle.
    """
    with pytest.raises((TypeError, attrs.exceptions.NotAnAttrsClassError)):
        trick(vetted)


@pytest.mark.parametrize(
    ("trick", "message"),
    [
        (VettedChunk, ""),
        (lambda: type("Mine", (VettedChunk,), {}), ""),
        (lambda: object.__new__(VettedChunk).__setstate__({}), ""),
        (
            lambda: pickle.dumps(object.__new__(VettedChunk)),
            ": pickle chunk.as_chunk(), and vet it again where it arrives",
        ),
        (
            lambda: object.__new__(VettedChunk).__replace__(),
            ": change chunk.as_chunk(), and vet it again",
        ),
    ],
)
def test_a_refusal_says_who_makes_vetted_chunks_and_what_to_do(trick, message: str) -> None:
    """
    Who wants to send one on is told how.
    """
    with pytest.raises(TypeError) as error:
        trick()
    assert f"only SafetyGate.vet() makes a VettedChunk{message}" == str(error.value)


@pytest.mark.skipif(not hasattr(copy, "replace"), reason="copy.replace is of Python 3.13")
def test_copy_replace_makes_none(vetted: VettedChunk) -> None:
    """
    Other values are other actions.
    """
    with pytest.raises(TypeError, match="vet it again"):
        copy.replace(vetted, values=np.ones((2, 1)))


def test_a_pickle_that_was_made_by_hand_is_refused() -> None:
    """
    One that makes an empty one and fills it, as pickle does by itself.
    """
    forged = b"ccopyreg\n__newobj__\n(cvlmcore.safety.vetted\nVettedChunk\ntR(dVvalues\nI1\nsb."
    with pytest.raises(TypeError):
        pickle.loads(forged)


def test_a_vetted_chunk_cannot_be_changed(vetted: VettedChunk) -> None:
    """
    Neither its fields nor its arrays.
    """
    for name in ("values", "report", "new"):
        with pytest.raises(AttributeError, match="cannot be changed"):
            setattr(vetted, name, None)
    with pytest.raises(AttributeError, match="cannot be changed"):
        del vetted.values
    with pytest.raises(ValueError, match="read-only"):
        vetted.values[0, 0] = 6.0
    assert vetted is copy.copy(vetted) is copy.deepcopy(vetted)


def test_every_transform_drops_the_status(vetted: VettedChunk) -> None:
    """
    What is computed from the values is a plain array, or a chunk to be vetted again.
    """
    plain = vetted.as_chunk()
    assert ActionChunk is type(plain)
    assert (vetted.names, vetted.source, vetted.observed_at_s) == (
        plain.names,
        plain.source,
        plain.observed_at_s,
    )
    parts = (Stream(name="arm", start=0, end=1),)
    came = SafetyGate(space=space(JOINT)).vet(chunk([[0.1]], streams=parts), last_command=[0.0])
    assert parts == came.streams == came.as_chunk().streams
    with pytest.raises(ContractError):
        SafetyGate(space=space(JOINT)).vet(vetted, last_command=[0.0])


def test_it_carries_what_it_was_vetted_against(vetted: VettedChunk) -> None:
    """
    The space, the reference, the time of the observation, and a digest of the values.
    """
    other = SafetyGate(space=space(joint(0.2))).vet(vetted.as_chunk(), last_command=[0.0])
    assert vetted.space_digest != other.space_digest
    assert vetted.digest == other.digest == hashlib.sha256(vetted.values.tobytes()).hexdigest()
    assert ([0.0], 12.5, None) == (
        vetted.last_command.tolist(),
        vetted.observed_at_s,
        vetted.limits_source,
    )
    assert "<VettedChunk of 'test': 2 x 1>" == repr(vetted)
    assert (
        SafetyGate(space=space(SLIDE)).vet(chunk([[0.0]], "dx"), last_command=None).last_command
        is None
    )


def test_what_came_to_the_gate_stays_beside_what_left_it() -> None:
    """
    To be recorded: it is the chunk itself, and takes no memory of its own.
    """
    came = chunk([[0.9], [0.9]], metadata={"seed": 3})
    gate = SafetyGate(space=space(JOINT), remedy=Remedy.CLAMP, execution_horizon=1)
    vetted = gate.vet(came, last_command=[0.0])
    assert vetted.proposed is came
    assert [[0.1]] == vetted.values.tolist()


def test_numpy_takes_vetted_actions_for_their_values(vetted: VettedChunk) -> None:
    """
    It was an array of one object, of no axes.
    """
    assert vetted.values.tolist() == np.asarray(vetted).tolist()
    assert not np.asarray(vetted).flags.writeable
    assert np.array(vetted, copy=True).flags.writeable
    assert np.float32 == vetted.__array__(np.float32).dtype


def test_the_gate_alone_issues_vetted_chunks() -> None:
    """
    In the whole package there is one call.
    """
    calls = [
        module_name(file)
        for file in module_files()
        for node in ast.walk(parse(file))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("_issue")
    ]
    assert ["vlmcore.safety.gate"] == calls


@pytest.mark.parametrize("bound", [0.1, 0.3, 1 / 3, np.pi, 1e-40, 1e-46])
def test_float32_is_rounded_towards_the_inside(bound: float) -> None:
    """
    In exact arithmetic, at both ends.
    """
    dim = ActionDim(name="x", low=-bound, high=bound, max_step=4 * bound)
    came = SafetyGate(space=space(dim)).vet(chunk([[bound], [-bound]]), last_command=[0.0])
    upper, lower = came.as_float32().ravel().astype(np.float64).tolist()
    assert -bound <= lower <= upper <= bound
    assert upper == pytest.approx(bound, rel=2**-22, abs=3e-45)


def test_a_bound_that_float32_can_write_stays_that_bound() -> None:
    """
    Nothing is taken off what is inside already.
    """
    gate = SafetyGate(space=space(joint(2.0, bound=0.75)))
    came = gate.vet(chunk([[0.75], [-0.75]]), last_command=[0.0])
    assert [0.75, -0.75] == came.as_float32().ravel().tolist()


def test_levels_are_still_levels_as_float32() -> None:
    """
    A level that float32 cannot write is read as the level again.
    """
    tenths = ActionDim(name="x", low=0.1, high=0.7, levels=(0.1, 0.3, 0.7))
    gate = SafetyGate(space=space(tenths))
    came = gate.vet(chunk([[0.1], [0.3], [0.7]]), last_command=[0.1]).as_float32()
    assert 3 == gate.vet(chunk(came), last_command=[0.1]).horizon
    assert [1.0] == SafetyGate(space=space(GRIPPER)).vet(
        chunk([[1]], "gripper"), last_command=[0]
    ).as_float32().ravel().tolist()


@pytest.mark.parametrize(
    ("dim", "values", "start"),
    [
        (ActionDim(name="x", low=0, high=1, max_step=1e-9), [[0.3 + 1e-9]], 0.3),
        (ActionDim(name="x", low=0, high=1e308, max_step=1e300), [[5e307]], 5e307),
        (ActionDim(name="x", low=0.1, high=0.1 + 2e-16, max_step=1), [[0.1]], 0.1),
    ],
)
def test_float32_that_is_too_coarse_gives_nothing(dim: ActionDim, values, start: float) -> None:
    """
    Rather than values that break a step or a bound.
    """
    came = SafetyGate(space=space(dim)).vet(chunk(values), last_command=[start])
    with pytest.raises(UnsafeActionError) as error:
        came.as_float32()
    assert "float32_too_coarse" == error.value.reason
    report = error.value.report
    assert (False, RefusalReason.FLOAT32_TOO_COARSE) == (report.safe_for_handoff, report.reason)
    assert report.safe_for_handoff is False
    assert report.total
    assert (True, 0) == (came.report.safe_for_handoff, came.report.total)


LAST_PLACE = 2.0**-24  # of a float32 from 0.5 to 1


@pytest.mark.parametrize(
    ("bound", "values", "is_given"),
    [
        (42.4, (0.3, 42.6), True),  # becomes 43: 0.6 too many, and the slack is 0.424
        (42.02, (0.49, 42.501), False),  # becomes 43: 0.98 too many, and twice the slack is 0.84
    ],
)
def test_rounding_is_forgiven_the_slack_once_more(bound: float, values, *, is_given: bool) -> None:
    """
    A hundredth of the bound to the audit, and as much again to float32, but not thrice; in last
    places.
    """
    first, second = (0.75 + value * LAST_PLACE for value in values)
    gate = SafetyGate(space=space(joint(bound * LAST_PLACE)))
    came = gate.vet(chunk([[first], [second]]), last_command=[first])
    if not is_given:
        with pytest.raises(UnsafeActionError):
            came.as_float32()
        return
    assert 43 * LAST_PLACE == float(np.diff(came.as_float32().astype(np.float64), axis=0)[0, 0])


MOVED = ActionDim(
    name="dx",
    reference=Reference.DELTA,
    low=-1,
    high=1,
    max_step=1,
    position_low=0,
    position_high=1,
)


def test_changes_are_rounded_to_the_nearest_where_their_sum_keeps_its_bounds() -> None:
    """
    Roundings are made to cancel only where they would lead out.
    """
    values = np.full((9, 1), 1 / 30)
    came = SafetyGate(space=space(MOVED)).vet(
        chunk(values, "dx"), last_command=[0.0], position={"dx": 0.0}
    )
    assert values.astype(np.float32).tobytes() == came.as_float32().tobytes()


def test_a_change_that_float32_leads_out_gives_nothing() -> None:
    """
    0.3 is rounded up by more than the whole range is wide, and nothing before it can make it good.
    """
    narrow = attrs.evolve(MOVED, position_high=1e-9)
    came = SafetyGate(space=space(narrow)).vet(
        chunk([[0.3]], "dx"), last_command=[0.0], position={"dx": -0.3}
    )
    with pytest.raises(UnsafeActionError) as error:
        came.as_float32()
    assert {ViolationKind.POSITION} == error.value.report.findings.kinds


def written(array: np.ndarray, factor: float) -> None:
    """Write to an array that is read-only, as torch does, by the address of its memory."""
    at = ctypes.cast(array.ctypes.data, ctypes.POINTER(ctypes.c_double))
    for i in range(array.size):
        at[i] *= factor


def test_what_was_written_to_vetted_values_is_seen(vetted: VettedChunk) -> None:
    """
    torch.from_dlpack(vetted.values).mul_(1000) reached the controller.
    """
    assert vetted.is_intact
    written(vetted.values, 1000)
    assert not vetted.is_intact
    with pytest.raises(UnsafeActionError) as error:
        vetted.as_float32()
    assert "altered" == error.value.reason == error.value.report.reason.value
    assert not error.value.report.safe_for_handoff

    clamped = SafetyGate(space=space(JOINT), remedy=Remedy.CLAMP).vet(
        chunk([[0.9]]), last_command=[0.0]
    )
    written(clamped.values, 1000)
    with pytest.raises(UnsafeActionError) as error:
        clamped.as_float32()
    assert clamped.report.violations == error.value.report.violations  # what had been found


@pytest.mark.parametrize(
    "trick",
    [
        lambda values: setattr(values, "shape", (1, 2)),
        lambda values: setattr(values, "shape", (2,)),
        lambda values: setattr(values, "dtype", np.int64),
    ],
)
@pytest.mark.filterwarnings("ignore:Setting")
def test_values_in_another_shape_are_not_intact(trick, vetted: VettedChunk) -> None:
    """
    The same bytes in two rows of one are not one row of two.
    """
    trick(vetted.values)
    assert not vetted.is_intact


def test_what_is_written_to_the_bounds_of_a_space_widens_no_gate() -> None:
    """
    torch.from_dlpack(space.high) *= 50 widened a gate that was there already.
    """
    mine = space(JOINT, SLIDE)
    before = SafetyGate(space=mine)
    for field in ("low", "high", "max_step"):
        written(getattr(mine, field), 50)
    for gate in (before, SafetyGate(space=mine)):
        for row in ([1.5, 0.0], [0.0, 1.0], [2.0, 0.0]):
            with pytest.raises(UnsafeActionError):
                gate.vet(chunk([row], "x", "dx"), last_command=[1.0, 0.0])


def test_torch_is_seen_where_it_wrote(vetted: VettedChunk) -> None:
    """
    It does not ask whether an array may be written to.
    """
    torch = pytest.importorskip("torch")
    torch.from_dlpack(vetted.values).mul_(1000)
    assert not vetted.is_intact
