"""Tests of `vlmcore_robotics.wire.session`: a late answer is never taken for the next one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from vlmcore.errors import PolicyProtocolError
from vlmcore_robotics.wire.session import Session, Turn


def refused(step: Callable[[], None]) -> PolicyProtocolError:
    with pytest.raises(PolicyProtocolError) as caught:
        step()
    return caught.value


def waiting() -> Session:
    session = Session("arm", greeting=True)
    session.greeted()
    session.asked()
    return session


def test_requests_and_answers_take_turns() -> None:
    """
    After the server has said what it is.
    """
    session = Session("arm", greeting=True)
    turns = [session.turn]
    for step in (session.greeted, session.asked, session.answered, session.asked, session.answered):
        step()
        turns.append(session.turn)

    assert [Turn.GREETING, Turn.OURS, Turn.THEIRS, Turn.OURS, Turn.THEIRS, Turn.OURS] == turns


def test_a_timed_out_session_is_poisoned_so_that_the_late_chunk_is_not_taken_for_the_next() -> None:
    """
    Receiving timed out, the client was used again, and the next call returned the old chunk.
    """
    session = waiting()
    session.abandon("no reply within 1 s")

    for step in (session.asked, session.answered, session.greeted):
        error = refused(step)
        assert ("ours", True) == (error.side, "no reply within 1 s" in error.problem)
    assert (Turn.BROKEN, False) == (session.turn, session.is_usable)


def test_nothing_is_asked_before_the_server_has_said_what_it_is() -> None:
    """
    Its metadata would be taken for the answer.
    """
    session = Session("arm", greeting=True)
    assert "arm: cannot ask: the server has to say what it is" == str(refused(session.asked))
    session.greeted()
    session.asked()


def test_one_request_waits_for_one_answer() -> None:
    """
    A second one meanwhile is our mistake, and takes nothing from the first.
    """
    session = waiting()
    error = refused(session.asked)
    assert ("ours", "cannot ask: an answer is awaited") == (error.side, error.problem)
    session.answered()
    assert Turn.OURS is session.turn


def test_an_answer_that_nobody_waits_for_breaks_the_session() -> None:
    """
    It is the peer's mistake, and from then on no answer can be trusted.
    """
    session = Session("arm", greeting=False)
    assert "theirs" == refused(session.answered).side
    assert "it sent what nobody waited for (nothing is asked)" in refused(session.asked).problem


def test_a_second_greeting_breaks_the_session() -> None:
    """
    It would be taken for an answer.
    """
    session = waiting()
    assert "theirs" == refused(session.greeted).side
    assert Turn.BROKEN is session.turn


def test_giving_up_where_nothing_is_awaited_breaks_nothing() -> None:
    """
    A call that was cancelled before it began leaves the connection as it was.
    """
    session = Session("arm", greeting=False)
    session.abandon("cancelled")
    session.asked()


def test_the_first_reason_is_kept() -> None:
    """
    What follows is a consequence of it.
    """
    session = waiting()
    session.abandon("no reply within 1 s")
    session.abandon("the server hung up")
    assert "no reply within 1 s" in refused(session.asked).problem


def test_a_closed_session_is_not_used_again() -> None:
    """
    Closing twice is no error; nor is giving up afterwards.
    """
    session = waiting()
    session.close()
    session.close()
    session.abandon("late")
    assert "cannot ask: the connection is closed" == refused(session.asked).problem
    assert "Session('arm', Turn.CLOSED)" == repr(session)


class LateAnswers(RuleBasedStateMachine):
    """A server that answers each request once, at any time, and a client that gives up at any."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.on_the_wire: list[int] = []  # requests whose answers are on their way
        self.awaited: int | None = None

    @initialize()
    def connect(self) -> None:
        self.session = Session("arm", greeting=True)
        self.session.greeted()

    @rule()
    def ask(self) -> None:
        if self.session.turn is not Turn.OURS:
            refused(self.session.asked)
            return
        self.session.asked()
        self.asked += 1
        self.awaited = self.asked
        self.on_the_wire.append(self.asked)

    @precondition(lambda self: self.on_the_wire)
    @rule()
    def an_answer_comes(self) -> None:
        came = self.on_the_wire.pop(0)
        if self.awaited is None:
            refused(self.session.answered)
        else:
            self.session.answered()
            assert self.awaited == came, "an answer was taken for that to another request"
            self.awaited = None

    @rule()
    def give_up(self) -> None:
        self.session.abandon("no reply")
        self.awaited = None

    @precondition(lambda self: not self.session.is_usable)
    @rule()
    def connect_again(self) -> None:
        self.on_the_wire.clear()  # what comes on the old connection comes to nobody
        self.connect()

    @invariant()
    def it_is_their_turn_exactly_while_an_answer_is_awaited(self) -> None:
        if hasattr(self, "session"):
            assert (self.awaited is not None) == (self.session.turn is Turn.THEIRS)


TestLateAnswers = LateAnswers.TestCase
