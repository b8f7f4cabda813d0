"""Tests of `vlmcore_robotics.clients._boundary`: whatever is raised becomes an error of ours."""

from __future__ import annotations

import asyncio
import inspect
import socket
import ssl

import pytest
import websockets.exceptions
from hypothesis import assume, given
from hypothesis import strategies as st
from websockets.datastructures import Headers
from websockets.frames import Close
from websockets.http11 import Response

from vlmcore.errors import (
    ContractError,
    PolicyError,
    PolicyProtocolError,
    PolicyRefusedError,
    PolicyTimeoutError,
    PolicyUnavailableError,
)
from vlmcore.secrets import Secret
from vlmcore_robotics.clients._boundary import Boundary, HangUpError, HttpStatusError, Stage

WHERE = "ws://127.0.0.1:8000"
BOUNDARY = Boundary(policy="pi05", origin=WHERE, waits_s=1.0)
PUBLIC = [
    kind
    for kind in map(websockets.exceptions.__dict__.get, websockets.exceptions.__all__)
    if inspect.isclass(kind) and issubclass(kind, Exception)
]


def made(kind: type[Exception], text: str = "x") -> Exception:
    """Make an exception of *kind*, with *text* wherever it takes text."""
    if issubclass(kind, websockets.exceptions.ConnectionClosed):
        return kind(Close(1011, text), None)
    if kind.__name__ in ("PayloadTooBig", "TooManyFragments"):
        return kind(*(9, 3)[: kind.__init__.__code__.co_argcount - 1])
    if kind in (websockets.exceptions.InvalidStatus, websockets.exceptions.InvalidProxyStatus):
        return kind(Response(400, "Bad", Headers(), text.encode()))
    if not hasattr(kind.__init__, "__code__"):
        return kind(text)
    return kind(*[text] * (kind.__init__.__code__.co_argcount - 1))


@pytest.mark.parametrize("stage", Stage)
@pytest.mark.parametrize("kind", PUBLIC, ids=lambda kind: kind.__name__)
def test_every_exception_of_websockets_is_an_error_of_a_policy(
    kind: type[Exception], stage: Stage
) -> None:
    """
    None of them reaches a caller as it is, whenever it is raised.
    """
    error = BOUNDARY.translated(made(kind), stage)
    assert isinstance(error, PolicyError)
    assert str(error).startswith(f"pi05: {WHERE}: ")


@pytest.mark.parametrize(
    ("error", "stage", "expected"),
    [
        (ConnectionRefusedError(111, "refused"), Stage.CONNECTION, PolicyUnavailableError),
        (socket.gaierror(-2, "unknown"), Stage.CONNECTION, PolicyUnavailableError),
        (TimeoutError(), Stage.CONNECTION, PolicyUnavailableError),
        (TimeoutError(), Stage.ANSWER, PolicyTimeoutError),
        (asyncio.TimeoutError(), Stage.METADATA, PolicyTimeoutError),
        (ConnectionResetError(104, "reset"), Stage.HANDSHAKE, PolicyUnavailableError),
        (ConnectionResetError(104, "reset"), Stage.ANSWER, PolicyProtocolError),
        (BrokenPipeError(32, "pipe"), Stage.REQUEST, PolicyProtocolError),
        (HangUpError("1001 bye"), Stage.ANSWER, PolicyProtocolError),
        (EOFError("end"), Stage.HANDSHAKE, PolicyUnavailableError),
        (ssl.SSLError(1, "wrong version"), Stage.CONNECTION, PolicyProtocolError),
        (ssl.SSLCertVerificationError(1, "unknown"), Stage.CONNECTION, PolicyProtocolError),
        (HttpStatusError(403, "no"), Stage.HANDSHAKE, PolicyRefusedError),
        (HttpStatusError(504, "later"), Stage.HANDSHAKE, PolicyUnavailableError),
        (OSError(24, "too many open files"), Stage.CONNECTION, PolicyUnavailableError),
        (RuntimeError("a bug"), Stage.ANSWER, PolicyProtocolError),
    ],
)
def test_an_error_says_whether_trying_again_is_sensible(
    error: Exception, stage: Stage, expected: type[PolicyError]
) -> None:
    """
    Unavailable is what was not asked; what may have been is another kind.
    """
    assert expected is type(BOUNDARY.translated(error, stage))


def test_an_error_of_ours_stays_what_it_is() -> None:
    """
    The caller's own mistake least of all is the fault of the peer.
    """
    error = ContractError("state", "got 1 number, expected 2")
    assert error is BOUNDARY.translated(error, Stage.TURN)
    ours = PolicyProtocolError("pi05", "cannot ask", "ours")
    assert "ours" == vars(BOUNDARY.translated(ours, Stage.REQUEST))["side"]


@given(
    token=st.text("abcdefghijXYZ0123456789-_.~+/=", min_size=8, max_size=60),
    kind=st.sampled_from([*PUBLIC, RuntimeError, OSError, HangUpError, UnicodeError]),
    stage=st.sampled_from(Stage),
    before=st.text(max_size=20),
)
def test_a_token_is_in_no_text(
    token: str, kind: type[Exception], stage: Stage, before: str
) -> None:
    """
    Whatever is raised with it, and wherever it stands there.
    """
    assume(token not in WHERE)
    boundary = Boundary(policy="pi05", origin=WHERE, waits_s=1.0, secret=Secret(token))
    for raised in (
        made(kind, f"{before}{token} after"),
        PolicyRefusedError("pi05", f"{before}{token}"),
        PolicyProtocolError("pi05", f"{before}{token}", "theirs"),
        HttpStatusError(500, f"{before}{token}"),
    ):
        error = boundary.translated(raised, stage)
        shown = f"{error!s} {error!r} {error.args!r} {vars(error)!r}"
        assert token not in shown
        assert error.__cause__ is error.__context__ is None
