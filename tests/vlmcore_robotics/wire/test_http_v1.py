"""Tests of `vlmcore_robotics.wire.http_v1`: both ends of the HTTP protocol."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groot_cases import seen
from vlmcore.contracts.actions import ActionChunk
from vlmcore.errors import (
    ContractError,
    LimitExceededError,
    PolicyError,
    PolicyProtocolError,
    PolicyRefusedError,
    PolicyStatusError,
    VlmcoreError,
)
from vlmcore.limits import HttpLimits
from vlmcore.policy.interface import PolicyInfo
from vlmcore.secrets import Secret
from vlmcore_robotics.wire.http_frames import WireEncoding
from vlmcore_robotics.wire.http_messages import (
    ContentType,
    HttpEndpoint,
    HttpRequest,
    HttpResponse,
)
from vlmcore_robotics.wire.http_metadata import HttpServerInfo
from vlmcore_robotics.wire.http_v1 import HttpCall, HttpCodec

JSON, MESSAGEPACK = ContentType
NAMES = ("x", "y", "gripper")
CODEC = HttpCodec(policy="act", action_names=NAMES)
TOKEN = Secret("sekret-token-1234", source="VLA_POLICY_TOKEN")
GUARDED = attrs.evolve(CODEC, token=TOKEN)
CALL = HttpCall(endpoint=HttpEndpoint.INFER)
ROWS = [[0.5, -0.25, 1.0], [0.125, 0.0, 0.0]]
CHUNK = ActionChunk(values=ROWS, names=NAMES, source="act", observed_at_s=7.5)


def response(body: Any, status: int = 200, **headers: str) -> HttpResponse:
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpResponse(status=status, headers=named, body=body)


def read(answer: HttpResponse, codec: HttpCodec = CODEC, **more: Any) -> ActionChunk:
    return codec.decode_answer(answer, observed_at_s=7.5, **more)


def status_of(request: HttpRequest, codec: HttpCodec = CODEC) -> int:
    with pytest.raises(PolicyStatusError) as caught:
        codec.decode_request(request, captured_at_s=7.5)
    return caught.value.status


def sent(**changes: Any) -> HttpRequest:
    return attrs.evolve(CODEC.encode_request(seen()), **changes)


def with_header(name: str, value: str | None) -> HttpRequest:
    headers = {**sent().headers, name: value}
    return sent(headers={each: said for each, said in headers.items() if said is not None})


def test_a_request_is_that_of_the_first_version() -> None:
    """
    Method, path, content type and keys; what is newer stands in headers.
    """
    request = CODEC.encode_request(seen(), request_id="r1", session="s1")

    assert ("POST", "/v1/infer") == (request.method, request.path)
    assert {
        "accept": "application/json",
        "content-type": "application/json",
        "x-request-id": "r1",
        "x-session-id": "s1",
    } == dict(request.headers)
    assert ["schema", "version", "task", "state", "timestamp", "history_fps", "cameras"] == list(
        json.loads(request.body)
    )
    token = GUARDED.encode_request(seen()).headers["authorization"]
    assert "Bearer sekret-token-1234" == token


@pytest.mark.parametrize("content_type", ContentType)
@pytest.mark.parametrize("encoding", [WireEncoding.PNG, WireEncoding.RAW])
def test_an_observation_goes_there_unchanged(
    encoding: WireEncoding, content_type: ContentType
) -> None:
    """
    With its ids, and how the answer is to be written.
    """
    codec = attrs.evolve(CODEC, encoding=encoding, content_type=content_type)
    request = codec.encode_request(seen(), request_id="r1", session="s1")
    call = CODEC.decode_request(request, captured_at_s=7.5)

    assert call.observation is not None
    assert seen() == call.observation
    assert ("r1", "s1", content_type) == (call.request_id, call.session, call.answer_type)


@pytest.mark.parametrize("content_type", ContentType)
def test_an_answer_goes_back_with_its_timings_and_its_id(content_type: ContentType) -> None:
    """
    Keys are those of the first version.
    """
    call = attrs.evolve(CALL, answer_type=content_type, request_id="r1")
    timing = {"preprocess": 1.5, "infer": 41.5, "postprocess": 0.0}
    answer = CODEC.encode_answer(CHUNK, call, timing_ms=timing, policy={"type": "act"})
    found = read(answer, request_id="r1")

    assert (ROWS, NAMES, "act", 7.5) == (
        found.values.tolist(),
        found.names,
        found.source,
        found.observed_at_s,
    )
    assert {"preprocess_ms": 1.5, "infer_ms": 41.5, "postprocess_ms": 0.0} == dict(
        found.metadata["server_timing"]
    )
    assert {"type": "act"} == dict(found.metadata["policy"])


def test_an_answer_of_an_old_server_is_read() -> None:
    """
    Without names, ids or a content type, and with numbers beside the actions.
    """
    found = read(response({"actions": ROWS, "horizon": 2, "latency_ms": 12.5}))
    assert (ROWS, 12.5) == (found.values.tolist(), found.metadata["latency_ms"])


def test_an_answer_to_another_request_is_not_taken() -> None:
    """
    A late answer was taken for the next one.
    """
    late = response({"actions": ROWS}, x_request_id="r1")
    with pytest.raises(PolicyProtocolError, match="a late answer"):
        read(late, request_id="r2")
    assert ROWS == read(response({"actions": ROWS}), request_id="r2").values.tolist()


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "JSON"),
        (b"<html>", "JSON"),
        (b'{"actions": [[NaN, 0, 0]]}', "got NaN"),
        (b'{"actions": [[Infinity, 0, 0]]}', "got Infinity"),
        (b'{"actions": [[1e999, 0, 0]]}', "float64"),
        (b'{"actions": [[0, 0, 0]], "actions": [[1, 1, 1]]}', "twice"),
        ({"actions": [["1.5", 0, 0]]}, "expected a number"),
        ({"actions": [[True, 0, 0]]}, "expected a number"),
        ({"actions": [0, 0, 0]}, "expected axes [H, D]"),
        ({"actions": [ROWS]}, "expected axes [H, D]"),
        ({"actions": [[0, 0]]}, "with 3 dimensions"),
        ({"actions": []}, "response"),
        ({"actions": ROWS, "action": ROWS}, "may be 'actions' or 'action'"),
        (
            {"actions": ROWS, "action_names": ["y", "x", "gripper"]},
            "expected x, y, gripper in this",
        ),
        ({}, "expected actions"),
        ([], "response"),
        (None, "response"),
    ],
)
def test_what_is_no_answer_is_the_peers_fault(body: Any, problem: str) -> None:
    """
    NaN, keys that are there twice, strings and true were accepted.
    """
    with pytest.raises(PolicyProtocolError) as caught:
        read(response(body))
    assert problem in caught.value.problem
    assert ("act", "theirs") == (caught.value.policy, caught.value.side)


def test_another_content_type_is_no_answer() -> None:
    """
    As of a proxy that shows its own page.
    """
    with pytest.raises(PolicyProtocolError, match="got 'text/html'"):
        read(response(b"<html>", content_type="text/html; charset=utf-8"))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (response({"error": "no camera 'side'"}, 400), "no camera 'side'"),
        (response({"error": {"code": 7}}, 500), "an error that is no text: {'code': 7}"),
        (response({"error": "x" * 5000}, 500), "x" * 997 + "..."),
        (
            response({"detail": "?"}, 404),
            "an error without words of the policy's (no content type)",
        ),
        (
            response(b"<html>", 502, content_type="text/html"),
            "an error without words of the policy's (text/html)",
        ),
        (response(b"", 503), "an error without words of the policy's (no content type)"),
        (
            response(b" " * (1 << 21), 500),
            "an error without words of the policy's (no content type)",
        ),
    ],
)
def test_a_failure_keeps_its_status_and_the_servers_words(answer: HttpResponse, words: str) -> None:
    """
    The words were lost behind "Server error '500 ...' for url".
    """
    for decode in (read, CODEC.decode_metadata, CODEC.decode_health):
        with pytest.raises(PolicyStatusError) as caught:
            decode(answer)
        assert (words, answer.status) == (caught.value.problem, caught.value.status)


def test_an_error_with_status_200_is_an_error() -> None:
    """
    It wins over actions beside it.
    """
    with pytest.raises(PolicyRefusedError, match=r"^act: no camera$"):
        read(response({"error": "no camera", "actions": ROWS}))


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (sent(path="/v1/infer/"), 404),
        (sent(path="/../v1/infer"), 404),
        (sent(path=""), 404),
        (sent(method="GET"), 405),
        (sent(method="OPTIONS"), 405),
        (attrs.evolve(CODEC.ask(HttpEndpoint.METADATA), method="POST"), 405),
        (with_header("content-type", None), 415),
        (with_header("content-type", "text/plain"), 415),
        (with_header("content-type", "application/msgpack"), 400),
        (with_header("x-request-id", "a b"), 400),
        (with_header("x-session-id", ""), 400),
        (sent(body=b""), 400),
        (sent(body=b"{"), 400),
        (sent(body=b'{"state": [NaN]}'), 400),
        (sent(body=b"[" * 100_000), 400),
        (sent(body=b'{"a":' * 50_000), 400),
        (sent(body=b"[" * 40 + b"]" * 40), 400),
        (sent(body=b"\xff"), 400),
        (sent(body=b"{}"), 422),
        (sent(body=b"[]"), 422),
        (sent(body=sent().body.replace(b"base64-jpeg", b"base64-png ")), 422),
        (sent(body=sent().body.replace(b'"data": "', b'"data": "A')), 422),
    ],
)
def test_a_request_that_is_none_has_the_status_that_says_why(
    request_: HttpRequest, status: int
) -> None:
    """
    A missing "data" and deep JSON were status 500, or the connection was dropped.
    """
    assert status == status_of(request_)


@pytest.mark.parametrize(
    "limit", ["max_request_bytes", "max_frame_bytes", "max_frames_bytes", "max_frame_pixels"]
)
def test_what_is_too_large_has_status_413(limit: str) -> None:
    """
    Whatever is.
    """
    codec = attrs.evolve(CODEC, limits=HttpLimits(**{limit: 10}))
    assert 413 == status_of(sent(), codec)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer sekret",
        "sekret-token-1234",
        "Basic sekret-token-1234",
        "Bearer \xfcber",
        "Bearer \udcff",
        "Bearer sekret-token-1234 x",
    ],
)
def test_a_server_with_a_token_refuses_who_does_not_know_it(header: str | None) -> None:
    """
    A header that is not ASCII dropped the connection without a reply.
    """
    assert 401 == status_of(with_header("authorization", header), GUARDED)


def test_who_knows_the_token_is_let_in_and_health_needs_none() -> None:
    """
    A load balancer has no token.
    """
    for endpoint in (HttpEndpoint.METADATA, HttpEndpoint.HEALTH):
        call = GUARDED.decode_request(GUARDED.ask(endpoint), captured_at_s=7.5)
        assert endpoint is call.endpoint
    assert 401 == status_of(CODEC.ask(HttpEndpoint.METADATA), GUARDED)
    assert CODEC.decode_request(CODEC.ask(HttpEndpoint.HEALTH), captured_at_s=7.5)
    lower = with_header("authorization", "bearer sekret-token-1234")
    assert GUARDED.decode_request(lower, captured_at_s=7.5).observation is not None


def test_a_reset_goes_there_and_back_with_its_session() -> None:
    """
    A server of old has no such path, which is no failure.
    """
    call = CODEC.decode_request(CODEC.encode_reset(session="s1"), captured_at_s=7.5)
    assert (HttpEndpoint.RESET, "s1", None) == (call.endpoint, call.session, call.observation)
    assert CODEC.decode_reset(CODEC.encode_ok(call))
    assert not CODEC.decode_reset(response({"error": "unknown path"}, 404))
    with pytest.raises(PolicyStatusError, match="busy"):
        CODEC.decode_reset(response({"error": "busy"}, 503))
    with pytest.raises(PolicyProtocolError):
        CODEC.decode_reset(response({"status": "no"}))


def test_health_and_metadata_go_there_and_back() -> None:
    """
    Somebody else at the port is found out.
    """
    call = CODEC.decode_request(CODEC.ask(HttpEndpoint.HEALTH), captured_at_s=7.5)
    CODEC.decode_health(CODEC.encode_ok(call))
    for other in (response({"ok": True}), response(b"OK\n"), response([])):
        with pytest.raises(PolicyProtocolError):
            CODEC.decode_health(other)
    server = HttpServerInfo(policy=PolicyInfo(name="act", horizon=16), has_sessions=True)
    call = CODEC.decode_request(CODEC.ask(HttpEndpoint.METADATA), captured_at_s=7.5)
    found = CODEC.decode_metadata(CODEC.encode_metadata(server, call))
    assert (16, True) == (found.policy.horizon, found.has_sessions)
    with pytest.raises(PolicyProtocolError):
        CODEC.decode_metadata(response({"http": 7}))
    with pytest.raises(ContractError, match="expected METADATA or HEALTH"):
        CODEC.ask(HttpEndpoint.INFER)


def test_a_failure_is_written_for_people_and_repeats_the_id() -> None:
    """
    On one line, cut, and without the token.
    """
    answer = GUARDED.encode_failure("bad token sekret-token-1234\nat /home", 422, request_id="r1")
    assert (422, "r1") == (answer.status, answer.headers["x-request-id"])
    assert {"error": "bad token [REDACTED] at /home"} == json.loads(answer.body)


@pytest.mark.parametrize(
    ("chunk", "more", "problem"),
    [
        (attrs.evolve(CHUNK, names=("y", "x", "gripper")), {}, "got the names"),
        (attrs.evolve(CHUNK, values=[[math.nan, 0, 0]]), {}, "run the safety gate first"),
        (CHUNK, {"timing_ms": {"infer": math.nan}}, "timing_ms"),
        (CHUNK, {"timing_ms": {"infer": -1.0}}, "timing_ms"),
        (CHUNK, {"policy": {"mean": math.inf}}, "JSON"),
    ],
)
def test_what_json_cannot_say_is_not_sent(
    chunk: ActionChunk, more: dict[str, Any], problem: str
) -> None:
    """
    NaN was status 400, so that no gate saw it: it travels in MessagePack.
    """
    with pytest.raises(ContractError, match=problem):
        CODEC.encode_answer(chunk, CALL, **more)


def test_nan_travels_in_messagepack_for_the_gate_to_find() -> None:
    """
    It is not hidden behind an error of the wire.
    """
    call = attrs.evolve(CALL, answer_type=MESSAGEPACK)
    chunk = attrs.evolve(CHUNK, values=[[math.nan, 0, math.inf]])
    assert chunk == read(CODEC.encode_answer(chunk, call))


@pytest.mark.parametrize(
    "echo",
    [
        lambda token: response({"error": f"wrong token {token}"}, 401),
        lambda token: response({"error": {"token": token}}, 401),
        lambda token: response(b"", 500, content_type=token),
        lambda token: response(b"", 200, content_type=token),
        lambda token: response({"actions": ROWS, "action_names": [token]}),
        lambda token: response({"actions": ROWS, "policy": {token: [token]}}),
        lambda token: response({"error": token}),
        lambda token: response({token: [1]}),
        lambda token: response(f'{{"{token}": 1, "{token}": 2}}'.encode()),
        lambda token: response(b"{}", 200, x_request_id=token),
    ],
)
def test_the_token_is_in_no_text_even_if_the_server_repeats_it(
    echo: Callable[[str], HttpResponse],
) -> None:
    """
    A server that logs headers may put them into its errors.
    """
    secret = TOKEN.reveal()
    request = GUARDED.encode_request(seen())
    texts: list[Any] = [GUARDED, request, echo(secret)]
    try:
        found = read(echo(secret), GUARDED, request_id="r1")
        texts += [found, dict(found.metadata)]
    except PolicyError as error:
        texts += [error, error.__cause__, error.__context__, error.args]
    assert secret not in " ".join(f"{each} {each!r}" for each in texts)
    told = response({"policy_info": {"action_names": [secret]}, secret: [secret]})
    assert secret not in repr(GUARDED.decode_metadata(told))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("policy", ""),
        ("action_names", ()),
        ("action_names", "xy"),
        ("encoding", "jpeg"),
        ("content_type", "application/json"),
        ("quality", 96),
        ("quality", True),
        ("token", "sekret-token-1234"),
        ("limits", None),
    ],
)
def test_a_codec_of_other_things_is_refused(field: str, value: Any) -> None:
    """
    With the name of the field, and never the token.
    """
    with pytest.raises(ContractError) as caught:
        attrs.evolve(CODEC, **{field: value})
    assert caught.value.field.startswith(field)
    assert "sekret" not in str(caught.value)


def test_what_is_no_observation_and_no_chunk_is_refused() -> None:
    """
    A vetted chunk or a plain dict, say.
    """
    wrong: Any = {"task": "wait"}
    with pytest.raises(ContractError, match="got dict, expected an Observation"):
        CODEC.encode_request(wrong)
    with pytest.raises(ContractError, match="chunk: got"):
        CODEC.encode_answer(wrong, CALL)


def test_a_large_observation_is_not_sent() -> None:
    """
    Rather than refused by the server.
    """
    codec = attrs.evolve(CODEC, limits=HttpLimits(max_request_bytes=100))
    with pytest.raises(LimitExceededError, match="max_request_bytes"):
        codec.encode_request(seen())


BODIES = {
    content_type: attrs.evolve(
        CODEC, content_type=content_type, encoding=WireEncoding.RAW
    ).encode_request(seen())
    for content_type in ContentType
}


@given(data=st.data(), content_type=st.sampled_from(ContentType))
def test_any_bytes_are_a_request_an_answer_or_our_error(
    data: st.DataObject, content_type: ContentType
) -> None:
    """
    Nothing else comes out of either end; bytes that are nearly right go furthest.
    """
    request = BODIES[content_type]
    body = bytearray(request.body)
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    for each in (bytes(body), data.draw(st.binary(max_size=100))):
        with contextlib.suppress(VlmcoreError):
            CODEC.decode_request(attrs.evolve(request, body=each), captured_at_s=7.5)
        with contextlib.suppress(VlmcoreError):
            read(response(each, content_type=content_type.value))


FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@given(
    values=st.lists(st.lists(FLOATS, min_size=3, max_size=3), min_size=1, max_size=5),
    content_type=st.sampled_from(ContentType),
)
def test_actions_go_there_and_back_unchanged(
    values: list[list[float]], content_type: ContentType
) -> None:
    """
    To the last bit, in both content types.
    """
    chunk = attrs.evolve(CHUNK, values=values)
    call = attrs.evolve(CALL, answer_type=content_type)
    found = read(CODEC.encode_answer(chunk, call))
    assert np.asarray(values).tobytes() == found.values.tobytes()
