"""Tests of `vlmcore_robotics.testing.server_checks`, on servers that are good and that are not."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import trustme
import zmq
from websockets.sync.server import ServerConnection, serve

from kit_cases import GROOT_LAYOUT, LAYOUT, LAYOUTS, NAMES, ROBOT, SEEN, hostile, serving
from openpi_cases import INFO, echoing
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.presets import find_embodiment
from vlmcore.errors import ContractError, EndpointError
from vlmcore.secrets import Secret
from vlmcore.testing import ScriptedPolicy
from vlmcore_robotics.testing import (
    SERVER_CHECKS,
    Behaviour,
    Finding,
    PolicyProtocol,
    ServerCheck,
    ServerCheckError,
    ServerCheckReport,
    check_server,
)
from vlmcore_robotics.wire.frames import FrameKind, decode_frame, encode_frame
from vlmcore_robotics.wire.groot import GrootCodec
from vlmcore_robotics.wire.groot_calls import GrootEndpoint
from vlmcore_robotics.wire.groot_dialects import GrootDialect
from vlmcore_robotics.wire.groot_info import modalities_from_info
from vlmcore_robotics.wire.openpi import OpenPICodec

OPENPI, HTTP, GROOT = PolicyProtocol
KEY = Secret("sk-123456")
PROTOCOLS = pytest.mark.parametrize("protocol", PolicyProtocol)
CODEC = OpenPICodec(policy="stock", layout=LAYOUT, action_names=NAMES)


def check(url: str, protocol: PolicyProtocol = OPENPI, **options: Any) -> ServerCheckReport:
    options = {"embodiment": ROBOT, "layout": LAYOUTS[protocol], "timeout_s": 10, **options}
    return check_server(url, protocol=protocol, **options)


def only(*names: str) -> list[ServerCheck]:
    """Choose a few, beside those without which nothing makes sense."""
    chosen = [each for each in SERVER_CHECKS if each.is_basic or each.name in names]
    assert len(chosen) == 2 + len(set(names) - {each.name for each in chosen if each.is_basic})
    return chosen


def named(report: ServerCheckReport, finding: Finding) -> dict[str, str]:
    return {each.name: each.why for each in report.of(finding)}


@PROTOCOLS
def test_our_servers_keep_every_promise(protocol: PolicyProtocol) -> None:
    """
    Without a risk, too; what is skipped is what the protocol has not.
    """
    options: dict[str, Any] = {"api_token" if protocol is GROOT else "api_key": KEY}
    if protocol is HTTP:
        options = {"token": KEY}
    with serving(protocol, **options) as url:
        report = check(url, protocol, token=KEY, deterministic=True)
    report.require_conforming(strict=True)
    assert len(SERVER_CHECKS) == len(report.results)
    assert "who shows no token is refused" in named(report, Finding.PASSED)
    for why in named(report, Finding.SKIPPED).values():
        assert any(words in why for words in ("has", "have", "only", "knows no")), why


Reply = Callable[[Any], Any]


@contextmanager
def stock(reply: Reply, metadata: Any = None) -> Iterator[str]:
    """Serve as openpi's own server does: no key, no origin, and tracebacks in text."""

    def handle(connection: ServerConnection) -> None:
        connection.send(encode_frame(metadata or {}, kind=FrameKind.METADATA))
        for message in connection:
            try:
                request = decode_frame(message, kind=FrameKind.REQUEST)  # type: ignore[arg-type]
                answer = encode_frame({"actions": reply(request)}, kind=FrameKind.RESPONSE)
            except Exception:  # noqa: BLE001 - as the server of openpi
                connection.send(traceback.format_exc())
                connection.close(1011, "Internal server error.")
                return
            connection.send(answer)

    server = serve(handle, "127.0.0.1", 0, compression=None, max_size=None)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
    finally:
        server.shutdown()
        thread.join()


def obedient(request: Any) -> Any:
    """Answer with the state, of a request in which all is there."""
    state = np.asarray(request["observation/state"], np.float64)
    pixels = request["observation/image"]
    assert pixels.ndim == 3, request["prompt"]
    return np.tile(state, (2, 1))


def test_what_a_stock_server_of_openpi_does_is_a_risk_and_no_failure() -> None:
    """
    It sent tracebacks to whoever asked, looked at no origin, and took any name for its own.
    """
    with stock(obedient) as url:
        report = check(url, deterministic=True)
    risks = named(report, Finding.RISK)
    assert {} == named(report, Finding.FAILED)
    assert "horizon" in risks.pop("it says all that can be checked")
    assert "Traceback" in risks.pop("nothing that it says tells of its files and code")
    assert {
        "a name that is not its own is refused",
        "a page in a browser is refused",
        "a message larger than all disks is not waited for",
    } <= risks.keys()
    assert report.is_conforming()
    with pytest.raises(ServerCheckError, match="a page in a browser is refused"):
        report.require_conforming(strict=True)


def test_a_server_that_lets_anybody_in_does_not_have_the_token_that_it_was_said_to_have() -> None:
    """
    The stock server never checked the key that its client sends.
    """
    with stock(obedient) as url:
        names = "who shows no token is refused", "who shows another token is refused"
        report = check(url, token=KEY, checks=only(*names))
    assert set(names) == named(report, Finding.RISK).keys()


def test_no_finding_shows_the_token() -> None:
    """
    A server may send it back in its errors.
    """

    def telling(_request: Any) -> Any:
        raise ValueError(KEY.reveal())

    with stock(telling) as url:
        report = check(url, token=KEY)
    assert KEY.reveal() not in f"{report}{report.results}{report.to_document()}"


MARKED = "an answer has the mark of the request that it is for"
GROOT_CODEC = GrootCodec(
    policy="stock",
    layout=GROOT_LAYOUT,
    modalities=modalities_from_info(INFO, GROOT_LAYOUT),
    dialect=GrootDialect.N1_7,
)


@contextmanager
def stock_groot(kind: int, envelope_of: Callable[[list[bytes]], list[bytes]]) -> Iterator[str]:
    """Serve GR00T with a socket of libzmq; what stands before an answer is what is said."""
    plan = np.zeros((INFO.horizon or 2, len(NAMES)))
    chunk = ActionChunk(values=plan, names=NAMES, source="stock", observed_at_s=0.0)
    answer, modalities = GROOT_CODEC.encode_answer(chunk), GROOT_CODEC.encode_modalities()
    done = threading.Event()
    with zmq.Context() as context, context.socket(kind) as server:
        port = server.bind_to_random_port("tcp://127.0.0.1")

        def serve() -> None:
            while not done.is_set():
                if server.poll(20):
                    *envelope, request = server.recv_multipart()
                    call = GROOT_CODEC.decode_call(request, captured_at_s=0.0)
                    acts = call.endpoint is GrootEndpoint.GET_ACTION
                    said = answer if acts else modalities
                    server.send_multipart([*envelope_of(envelope), said])

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"tcp://127.0.0.1:{port}"
        finally:
            done.set()
            thread.join()


def test_a_server_of_libzmq_gives_the_mark_of_a_request_back() -> None:
    """
    GR00T's own is a REP socket, which does so by itself.
    """
    with stock_groot(zmq.REP, lambda before: before) as url:
        report = check(url, GROOT, checks=only(MARKED))
    assert MARKED in named(report, Finding.PASSED)


def test_a_server_that_forgets_the_mark_of_a_request_is_found() -> None:
    """
    Our client takes no answer of it: nobody could tell a late one from the one that is awaited.
    """
    with stock_groot(zmq.ROUTER, lambda before: [before[0], b""]) as url:
        report = check(url, GROOT, checks=only(MARKED))
    assert "the answer to 'mark-1' is marked ''" == named(report, Finding.FAILED)[MARKED]


class Mixing:
    """Answers with what the client before asked for."""

    def __init__(self) -> None:
        self.before: Any = np.zeros((2, 2))

    def __call__(self, request: Any) -> Any:
        answer, self.before = self.before, obedient(request)
        return answer


def growing() -> Reply:
    counted: list[int] = []

    def reply(_request: Any) -> Any:
        counted.append(1)
        return np.zeros((1 + len(counted) % 2, 2))

    return reply


def dying(request: Any) -> Any:
    if "unknown" in request:
        raise SystemExit
    return obedient(request)


def hanging() -> Reply:
    stuck = threading.Event()

    def reply(request: Any) -> Any:
        if stuck.is_set() or "unknown" in request:
            stuck.set()
            threading.Event().wait(3)
        return obedient(request)

    return reply


FIVE = {"policy_info": {"name": "five", "horizon": 5}}


@pytest.mark.parametrize(
    ("reply", "metadata", "name", "words"),
    [
        (Mixing(), None, "clients do not get what others asked for", "gives other numbers"),
        (growing(), None, "two answers have one shape", "the shapes are"),
        (obedient, FIVE, "an answer has as many steps as it said", "2 steps came, expected the 5"),
        (lambda _: np.zeros((2, 3)), None, "it answers a call with actions", "expected axes"),
        (lambda _: "home", None, "it answers a call with actions", "PolicyProtocolError"),
        (
            obedient,
            {"policy_info": {"name": "other", "action_names": ["x", "y"]}},
            "it says what it is, and that is for the robot",
            "it is not for 'two-joint arm'",
        ),
        (hanging(), None, "a key that is not known does no harm", "neither answered nor hung up"),
    ],
)
def test_a_server_that_breaks_a_promise_is_found(
    reply: Reply, metadata: Any, name: str, words: str
) -> None:
    """
    A check that never fails is none.
    """
    with stock(reply, metadata) as url:
        timeout_s = 1 if words.startswith("neither") else 10
        report = check(url, deterministic=True, timeout_s=timeout_s, checks=only(name))
    assert words in named(report, Finding.FAILED)[name]
    assert not report.is_conforming()


def test_actions_that_are_not_finite_are_a_risk() -> None:
    """
    The gate stops them, and a client may have none.
    """
    with stock(lambda _: np.full((2, 2), np.inf)) as url:
        report = check(url, checks=only("its actions are finite"))
    assert ["its actions are finite"] == list(named(report, Finding.RISK))


def test_a_request_without_sense_that_is_answered_with_actions_is_a_risk() -> None:
    """
    The robot would move by what nobody meant.
    """
    with stock(lambda _: np.zeros((2, 2))) as url:
        report = check(url, checks=only("a request without its camera is refused"))
    assert "nobody meant" in named(report, Finding.RISK)["a request without its camera is refused"]


@PROTOCOLS
@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (Behaviour.HANGS_UP_AT_ONCE, "EOFError: the peer hung up"),
        (Behaviour.SILENT_ON_METADATA, "nothing came within 0.5 s"),
        (Behaviour.OTHER_METADATA, ""),
        (Behaviour.ANOTHER_PROTOCOL, ""),
        (Behaviour.SENSELESS, ""),
        (Behaviour.DEEP, ""),
        (Behaviour.OVERSIZED, ""),
        (Behaviour.ENDLESS, ""),
    ],
)
def test_nothing_else_is_tried_where_a_server_does_not_answer_at_all(
    protocol: PolicyProtocol, behaviour: Behaviour, words: str
) -> None:
    """
    What it does instead is said once, in time and in little memory.
    """
    with hostile(protocol, behaviour) as server:
        report = check(server.url, protocol, timeout_s=0.5)
    (failed,) = report.of(Finding.FAILED)
    assert words in failed.why
    assert "not tried" in report.results[-1].why


def test_a_port_where_nobody_listens_is_one_failure() -> None:
    """
    Forty of the same kind tell nothing more.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        report = check(f"ws://127.0.0.1:{free.getsockname()[1]}")
    (failed,) = report.of(Finding.FAILED)
    assert "ConnectionRefusedError" in failed.why


def test_a_server_behind_tls_is_checked_and_one_with_another_certificate_is_not() -> None:
    """
    The certificate is that of the name that was dialled.
    """
    authority, other = trustme.CA(), trustme.CA()
    mine = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(mine)
    trusting, wary = ssl.create_default_context(), ssl.create_default_context()
    authority.configure_trust(trusting)
    other.configure_trust(wary)
    with serving(OPENPI, tls=mine) as url:
        checks = only("garbage is refused", "other protocols on its port do no harm")
        check(url, tls=trusting, checks=checks).require_conforming(strict=True)
        (failed,) = check(url, tls=wary).of(Finding.FAILED)
    assert "CERTIFICATE_VERIFY_FAILED" in failed.why


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"protocol": "openpi"}, "protocol"),
        ({"layout": None}, "layout: got NoneType, expected ObservationLayout"),
        ({"protocol": GROOT}, "layout: got ObservationLayout, expected GrootLayout"),
        ({"protocol": HTTP}, "layout: got ObservationLayout, expected None"),
        ({"embodiment": "arm"}, "embodiment: got str"),
        ({"token": "sk-123456"}, "token: got str"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"observation": "seen"}, "observation"),
        ({"tls": ssl.create_default_context()}, "tls: got one, expected none with ws"),
        ({"embodiment": find_embodiment("aloha_bimanual_template")}, "images: got cameras"),
    ],
)
def test_what_is_told_of_a_server_is_checked_before_it_is_called(options: Any, words: str) -> None:
    """
    A robot that the layout cannot hold is no fault of the server.
    """
    options = {"protocol": OPENPI, "embodiment": ROBOT, "layout": LAYOUT, **options}
    with pytest.raises(ContractError, match=words) as error:
        check_server("ws://127.0.0.1:9", **options)
    assert "sk-123456" not in str(error.value)


def test_a_server_on_another_host_is_called_where_that_is_allowed_only() -> None:
    """
    It would be attacked.
    """
    with pytest.raises(EndpointError, match="allow_remote"):
        check("wss://policies.example")


def test_a_report_is_a_document_too() -> None:
    """
    For machines that read it in CI.
    """
    with hostile(HTTP, Behaviour.SENSELESS) as server:
        report = check(server.url, HTTP, observation=SEEN)
    said = json.loads(json.dumps(report.to_document()))
    assert ("http", 1) == (said["protocol"], said["failed"])
    assert len(SERVER_CHECKS) == len(said["checks"])
    assert {"name", "finding", "why"} == said["checks"][0].keys()
    assert f"{server.url} (http): 1 passed" in str(report)
    with pytest.raises(ServerCheckError, match="it answers a call with actions") as error:
        report.require_conforming()
    assert report is error.value.report


def test_a_policy_that_refuses_is_a_failure_in_its_own_words() -> None:
    """
    So that one knows what to mend.
    """
    policy = ScriptedPolicy([ContractError("state", "got 2 numbers, expected 7")], info=INFO)
    with serving(HTTP, policy) as url:
        (failed,) = check(url, HTTP).of(Finding.FAILED)
    assert "state: got 2 numbers, expected 7" in failed.why
    assert echoing().info.name == "scripted"


def test_the_names_of_checks_are_all_different() -> None:
    """
    They are what reports and pytest know them by.
    """
    assert len(SERVER_CHECKS) == len({each.name for each in SERVER_CHECKS})
