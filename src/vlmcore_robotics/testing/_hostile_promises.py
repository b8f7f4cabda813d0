"""What a server promises when somebody means it harm, each with the harm."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import attrs

from vlmcore.secrets import Secret
from vlmcore.testing._promises import BrokenPromiseError
from vlmcore_robotics.testing._line import Heard, Line, ShutDoorError
from vlmcore_robotics.testing._lines import HttpLine
from vlmcore_robotics.testing._server_promises import ServerPromise
from vlmcore_robotics.testing._server_under_test import (
    NotForThisError,
    RiskError,
    ServerUnderTest,
)
from vlmcore_robotics.testing._tries import TRIES, Try
from vlmcore_robotics.testing.protocols import PolicyProtocol

__all__ = ["HOSTILE_PROMISES"]

_SILENT_CLIENTS = 8
_DRIPS = 20
_WAITING_S = 2.0
_DRIP_S = 0.01
_OTHERS = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32),  # the start of TLS
    b"SSH-2.0-OpenSSH_9.6\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00CURVE" + bytes(64),
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(99),
)


def _withstands(wrong: Try, server: ServerUnderTest) -> None:
    """Send a request that is wrong; then a good call must be answered."""
    heard = set()
    with server.line() as line:
        for each in line.formats():
            body = wrong.make(server.request(each))
            if body is not None:
                heard.add(server.heard_after(each, each.sent(body)))
    if not heard:
        raise NotForThisError("its messages have no such thing")
    server.require_alive()
    if Heard.ANSWER in heard and not wrong.harmless:
        raise RiskError(f"{Heard.ANSWER.value}: the robot would move by what nobody meant")


def _outlives(
    harm: Callable[[ServerUnderTest, Line, bytes], None], server: ServerUnderTest
) -> None:
    """Do something in the middle of a request; then a good call must be answered."""
    with server.line() as line:
        request = line.sent(line.request(server.observation))
        line.redial()
        harm(server, line, request)
    server.require_alive()


def _hangs_up_in_a_request(_server: ServerUnderTest, line: Line, request: bytes) -> None:
    line.stream.send(request[: len(request) // 2])


def _is_killed_in_a_request(_server: ServerUnderTest, line: Line, request: bytes) -> None:
    line.stream.send(request[: len(request) // 2])
    line.stream.reset()


def _hangs_up_before_the_answer(_server: ServerUnderTest, line: Line, request: bytes) -> None:
    line.stream.send(request)


def _drips(server: ServerUnderTest, line: Line, request: bytes) -> None:
    for byte in request[:_DRIPS]:
        line.stream.send(bytes((byte,)))
        time.sleep(_DRIP_S)
    server.require_alive()


def _lets_nobody_wait(server: ServerUnderTest) -> None:
    with ExitStack() as stack, server.calling():
        for _ in range(_SILENT_CLIENTS):
            stack.callback(server.target.dialled().close)
        server.require_alive()


def _knows_no_other_protocol(server: ServerUnderTest) -> None:
    for said in _OTHERS:
        with server.calling():
            stream = server.target.dialled()
        with contextlib.suppress(OSError):
            stream.send(said)
        stream.cut()
        with contextlib.suppress(OSError):
            server.look_at(stream.to_the_end())
        stream.close()
    server.require_alive()


def _does_not_wait_for_all_disks(server: ServerUnderTest) -> None:
    patience_s = min(_WAITING_S, server.target.patience_s)
    with server.line(patience_s=patience_s) as line:
        try:
            server.heard_after(line, line.oversized())
        except BrokenPromiseError as error:
            if not isinstance(error.__cause__, TimeoutError):
                raise
            raise RiskError("it waits for all of it, and holds what comes") from error
        finally:
            server.require_alive()


def _refuses_text(server: ServerUnderTest) -> None:
    if server.protocol is not PolicyProtocol.OPENPI:
        raise NotForThisError("only WebSocket tells text from bytes")
    with server.line() as line:
        heard = server.heard_after(line, line.sent("give me actions"))
    server.require_alive()
    if heard is Heard.ANSWER:
        raise RiskError(heard.value)


def _refuses_headers(headers: dict[str, str], problem: str, server: ServerUnderTest) -> None:
    if server.protocol is PolicyProtocol.GROOT:
        raise NotForThisError("ZeroMQ has no headers, and no browser speaks it")
    if not _is_refused(server, headers=headers):
        raise RiskError(problem)


def _refuses_tokens(token: Secret | None, server: ServerUnderTest) -> None:
    if server.target.token is None:
        raise NotForThisError(
            "no token was given: if it asks for none, whoever reaches it is let in"
        )
    if not _is_refused(server, token=token):
        raise RiskError("it let somebody in who does not know its token")


def _refuses_what_it_has_not(server: ServerUnderTest) -> None:
    if server.protocol is not PolicyProtocol.HTTP:
        raise NotForThisError("only HTTP has paths, methods and content types")
    wrong: list[str] = []
    with server.line() as line:
        assert isinstance(line, HttpLine)
        good = line.question(line.request(server.observation))
        for what, request in (
            ("path", attrs.evolve(good, path="/v9/infer")),
            ("method", attrs.evolve(good, method="PUT")),
            ("type", attrs.evolve(good, headers={**good.headers, "content-type": "text/plain"})),
        ):
            if server.heard_after(line, line.written(request)) is Heard.ANSWER:
                wrong.append(what)
    if wrong:
        raise RiskError(f"it answers a request of another {', '.join(wrong)}")


def _keeps_its_code_to_itself(server: ServerUnderTest) -> None:
    with contextlib.suppress(BrokenPromiseError), server.line() as line:
        server.heard_after(line, line.sent(server.request(line).packed({})))
    if server.heard:
        raise RiskError(f"it says {server.heard[0]!r} to whoever asks")


def _is_refused(server: ServerUnderTest, **changes: object) -> bool:
    """Say whether a call with *changes* ends without actions."""
    try:
        with server.line(**changes) as line:
            request = line.sent(line.request(server.observation))
            return server.heard_after(line, request) is not Heard.ANSWER
    except BrokenPromiseError as error:
        if isinstance(error.__cause__, TimeoutError):
            raise
        if isinstance(error.__cause__, ShutDoorError):
            return error.__cause__.status in range(400, 500)
        return True


HOSTILE_PROMISES: tuple[ServerPromise, ...] = (
    *(ServerPromise(words=each.words, check=partial(_withstands, each)) for each in TRIES),
    ServerPromise(words="text in place of bytes is refused", check=_refuses_text),
    ServerPromise(
        words="a message larger than all disks is not waited for",
        check=_does_not_wait_for_all_disks,
    ),
    *(
        ServerPromise(words=words, check=partial(_outlives, harm))
        for words, harm in (
            ("a client that hangs up in a request does no harm", _hangs_up_in_a_request),
            ("a client that is killed in a request does no harm", _is_killed_in_a_request),
            (
                "a client that does not wait for its answer does no harm",
                _hangs_up_before_the_answer,
            ),
            ("a client that sends byte by byte does not keep others waiting", _drips),
        )
    ),
    ServerPromise(
        words="clients that say nothing do not keep others waiting", check=_lets_nobody_wait
    ),
    ServerPromise(words="other protocols on its port do no harm", check=_knows_no_other_protocol),
    ServerPromise(
        words="other paths, methods and content types are refused", check=_refuses_what_it_has_not
    ),
    ServerPromise(
        words="a name that is not its own is refused",
        check=partial(
            _refuses_headers,
            {"Host": "attacker.example"},
            "a page can make its own name lead here, and then speak to the server",
        ),
    ),
    ServerPromise(
        words="a page in a browser is refused",
        check=partial(
            _refuses_headers,
            {"Origin": "https://attacker.example"},
            "any page that is open on this machine can move the robot",
        ),
    ),
    ServerPromise(words="who shows no token is refused", check=partial(_refuses_tokens, None)),
    ServerPromise(
        words="who shows another token is refused",
        check=partial(_refuses_tokens, Secret("not-the-token")),
    ),
    ServerPromise(
        words="nothing that it says tells of its files and code", check=_keeps_its_code_to_itself
    ),
)
"""All of them; after each harm, a good call must be answered."""
