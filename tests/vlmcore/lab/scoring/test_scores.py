"""Tests of `vlmcore.lab.scoring.scores`."""

from __future__ import annotations

from typing import Any

import pytest

from vlmcore.errors import ContractError
from vlmcore.lab.scoring.scores import Score, ScoreFlag, Seen, is_cut, listed, look_at
from vlmcore.vlm.generation import StopReason


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), True, "1", None])
def test_a_value_is_a_number_from_0_to_1(value: Any) -> None:
    """
    NaN would pass every gate.
    """
    with pytest.raises(ContractError, match=r"^value: got "):
        Score(value=value, reason="is right")


def test_a_score_has_a_reason_and_flags_in_one_order() -> None:
    """
    Each flag once.
    """
    flags = [ScoreFlag.CUT, ScoreFlag.EMPTY, ScoreFlag.CUT]

    assert (ScoreFlag.EMPTY, ScoreFlag.CUT) == Score(value=0, reason="x", flags=flags).flags
    with pytest.raises(ContractError, match=r"^reason: got blank text"):
        Score(value=0, reason=" ")
    with pytest.raises(ContractError, match=r"^flags\[0\]: got 'cut', expected one of"):
        Score(value=0, reason="x", flags=("cut",))


def test_every_end_of_a_local_model_but_its_own_is_a_cut() -> None:
    """
    Only `StopReason.END` is a whole answer.
    """
    assert [reason for reason in StopReason if reason is not StopReason.END] == [
        reason for reason in StopReason if is_cut(reason.value)
    ]


@pytest.mark.parametrize(
    ("reason", "cut"),
    [("stop", False), ("tool_calls", False), (None, False), ("", False)]
    + [(word, True) for word in ("length", "max_tokens", "content_filter")],
)
def test_the_words_of_servers_are_known(reason: str | None, cut: bool) -> None:  # noqa: FBT001
    """
    What nobody said passes for whole.
    """
    assert cut is is_cut(reason)


def test_there_is_nothing_to_look_at_where_there_is_no_answer() -> None:
    """
    The score is made already.
    """
    assert Seen("blue", ()) == look_at("blue", "stop", must_be_whole=True)
    empty = look_at("<think>blue", "length", must_be_whole=True)
    assert isinstance(empty, Score)
    assert "there is no answer" == empty.reason
    assert (ScoreFlag.EMPTY, ScoreFlag.CUT, ScoreFlag.REASONING) == empty.flags


def test_a_list_of_names_stays_short() -> None:
    """
    Reasons are read in a table.
    """
    assert "'a', 'b'" == listed("ab")
    assert "'a', 'b', 'c', 'd', 'e' and 2 more" == listed("abcdefg")
    assert 42 == len(listed(["x" * 1000]))
