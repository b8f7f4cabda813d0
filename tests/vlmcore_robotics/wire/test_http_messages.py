"""Tests of `vlmcore_robotics.wire.http_messages`, `http_documents` and `http_metadata`."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from groot_cases import seen
from vlmcore.contracts.embodiment import CameraSpec
from vlmcore.errors import ContractError, DocumentError, LimitExceededError
from vlmcore.limits import HttpLimits
from vlmcore.policy.interface import PolicyInfo
from vlmcore_robotics.wire.frames import FrameKind
from vlmcore_robotics.wire.http_documents import (
    observation_from_document,
    observation_to_document,
)
from vlmcore_robotics.wire.http_frames import WireEncoding
from vlmcore_robotics.wire.http_messages import (
    ContentType,
    HttpRequest,
    HttpResponse,
    read_body,
    require_id,
    write_body,
)
from vlmcore_robotics.wire.http_metadata import (
    HttpServerInfo,
    metadata_document,
    server_info_from,
)

JSON, MESSAGEPACK = ContentType
LIMITS = HttpLimits()
INFO = PolicyInfo(
    name="act",
    action_names=("x", "y"),
    cameras=(CameraSpec(name="front", height_px=4, width_px=5),),
    horizon=16,
    rate_hz=30.0,
)


def document(**changes: Any) -> dict[str, Any]:
    made = observation_to_document(seen(), WireEncoding.PNG, JSON, quality=92, limits=LIMITS)
    return {**made, **changes}


def read(value: Any, content_type: ContentType = JSON) -> Any:
    return observation_from_document(value, content_type, captured_at_s=7.5, limits=LIMITS)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("application/json", JSON),
        ("Application/JSON; charset=utf-8", JSON),
        ("application/msgpack", MESSAGEPACK),
    ],
)
def test_a_content_type_is_read_without_its_parameters(header: str, expected: ContentType) -> None:
    """
    As libraries send it.
    """
    assert expected is ContentType.of(header)


@pytest.mark.parametrize("header", ["", "text/plain", "application/jsonx", "text/html;json"])
def test_another_content_type_is_refused(header: str) -> None:
    """
    A page in a browser may send ``text/plain`` to any port without being asked.
    """
    with pytest.raises(ContractError, match="content-type"):
        ContentType.of(header)


def test_headers_are_read_whatever_their_capitals_and_never_shown() -> None:
    """
    The token is among them.
    """
    request = HttpRequest(method="GET", path="/", headers={"Authorization": "Bearer sekret"})
    assert "Bearer sekret" == request.headers["authorization"]
    assert "sekret" not in repr(request)


@pytest.mark.parametrize(
    "make",
    [
        lambda: HttpRequest(method="GET", path="/", headers={"A": "1", "a": "2"}),
        lambda: HttpRequest(method="GET", path="/", headers=[("a", "1")]),
        lambda: HttpRequest(method="GET", path="/", headers={"a": 1}),
        lambda: HttpRequest(method=7, path="/", headers={}),
        lambda: HttpRequest(method="GET", path=None, headers={}),
        lambda: HttpRequest(method="GET", path="/", headers={}, body="text"),
        lambda: HttpResponse(status=True, headers={}),
        lambda: HttpResponse(status=99, headers={}),
        lambda: HttpResponse(status=200, headers={}, body="text"),
        lambda: require_id("x-request-id", ""),
        lambda: require_id("x-request-id", "a b"),
        lambda: require_id("x-request-id", "a\r\nset-cookie: b"),
        lambda: require_id("x-request-id", "\u00fc"),
        lambda: require_id("x-request-id", "a" * 129),
        lambda: require_id("x-request-id", None),
    ],
)
def test_messages_of_other_things_are_refused(make: Any) -> None:
    """
    A header that is there twice is none: two readers would take different ones.
    """
    with pytest.raises(ContractError):
        make()


@pytest.mark.parametrize("content_type", ContentType)
def test_bodies_are_bounded_both_ways(content_type: ContentType) -> None:
    """
    What is written can be read by a peer with the same limits.
    """
    limits = HttpLimits(max_response_bytes=10)
    body = write_body({"a": 1}, content_type, kind=FrameKind.RESPONSE, limits=limits)
    assert {"a": 1} == read_body(body, content_type, kind=FrameKind.RESPONSE, limits=limits)
    with pytest.raises(LimitExceededError, match="max_response_bytes"):
        write_body({"a": "x" * 10}, content_type, kind=FrameKind.RESPONSE, limits=limits)
    with pytest.raises(LimitExceededError, match="max_response_bytes"):
        read_body(body + b" " * 10, content_type, kind=FrameKind.RESPONSE, limits=limits)


def test_an_observation_has_the_keys_of_the_first_version() -> None:
    """
    In their order.
    """
    assert ["schema", "version", "task", "state", "timestamp", "history_fps", "cameras"] == list(
        document()
    )
    assert "comfyui-vlm/robot-observation" == document()["schema"]
    assert seen() == read(document())


def test_schema_version_and_what_is_newer_may_be_missing_or_more() -> None:
    """
    A missing schema is version 1; keys of a newer client are passed over.
    """
    sparse = document(deadline_ms=100)
    for key in ("schema", "version", "timestamp", "history_fps"):
        del sparse[key]
    assert 1.0 == read(sparse).frame_rate_hz


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"schema": "other"}, "$.schema"),
        ({"version": 2}, "$.version"),
        ({"version": True}, "$.version"),
        ({"task": "  "}, "$.task"),
        ({"task": "x" * 16385}, "$.task"),
        ({"state": []}, "$.state"),
        ({"state": [True]}, "$.state[0]"),
        ({"state": ["1.5"]}, "$.state[0]"),
        ({"state": [float("nan")]}, "$.state[0]"),
        ({"state": [0.0] * 2049}, "$.state"),
        ({"state": {"x": 1.0}}, "$.state"),
        ({"timestamp": "now"}, "$.timestamp"),
        ({"history_fps": 0}, "$.history_fps"),
        ({"cameras": {}}, "$.cameras"),
        ({"cameras": {str(i): [] for i in range(17)}}, "$.cameras"),
        ({"cameras": {"front": []}}, "$.cameras.front"),
        ({"cameras": {"front": {}}}, "$.cameras.front"),
        ({"cameras": {"front": [{"encoding": "base64-jpeg"}]}}, "$.cameras.front[0].data"),
        ({"cameras": {"front": [{"data": "QUJD"}]}}, "$.cameras.front[0].encoding"),
        (
            {"cameras": {"front": [{"encoding": "base64-gif", "data": "QUJD"}]}},
            "$.cameras.front[0].encoding",
        ),
        (
            {"cameras": {"front": [{"encoding": "base64-jpeg", "data": ""}]}},
            "$.cameras.front[0].data",
        ),
        (
            {"cameras": {"front": [{"encoding": "base64-jpeg", "data": 7}]}},
            "$.cameras.front[0].data",
        ),
        (
            {"cameras": {"front": [{"encoding": "base64-jpeg", "data": "A", "frame_index": -1}]}},
            "$.cameras.front[0].frame_index",
        ),
        (
            {"cameras": {"front": [{"encoding": "base64-jpeg", "data": "A", "colour": "BGR"}]}},
            "$.cameras.front[0].colour",
        ),
    ],
)
def test_every_fault_of_an_observation_is_told_with_its_place(
    changes: dict[str, Any], path: str
) -> None:
    """
    Strings and true were taken for numbers, and a missing "data" was status 500.
    """
    with pytest.raises(DocumentError) as caught:
        read(document(**changes))
    assert path in [place for place, _ in caught.value.faults]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"cameras": {"a\nb": document()["cameras"]["cam_front"]}}, "images"),
        (
            {
                "cameras": {
                    "a": document()["cameras"]["cam_front"],
                    "b": document()["cameras"]["cam_front"] * 2,
                }
            },
            "cameras['b']",
        ),
        ({"task": "\ud800"}, "instruction"),
    ],
)
def test_what_the_contract_refuses_is_refused_here(changes: dict[str, Any], field: str) -> None:
    """
    Names with control characters, frames that do not go together, text that is none.
    """
    with pytest.raises(ContractError) as caught:
        read(document(**changes))
    assert caught.value.field.startswith(field)


def test_a_state_of_messagepack_may_be_an_array() -> None:
    """
    Of one axis, and of numbers.
    """
    made = observation_to_document(seen(), WireEncoding.RAW, MESSAGEPACK, quality=92, limits=LIMITS)
    assert seen() == read({**made, "state": np.asarray(made["state"])}, MESSAGEPACK)
    for wrong in (
        np.zeros((1, 6)),
        np.zeros(5000),
        np.array(1.0),
        np.array([True]),
        np.array([np.nan]),
    ):
        with pytest.raises(ContractError, match="state"):
            read({**made, "state": wrong}, MESSAGEPACK)


@pytest.mark.parametrize("data", [np.array(7, np.uint8), np.zeros((0, 1, 3), np.uint8), b"", "A"])
def test_pixels_of_messagepack_that_are_none_are_refused(data: Any) -> None:
    """
    An array without axes has no length either.
    """
    made = observation_to_document(seen(), WireEncoding.RAW, MESSAGEPACK, quality=92, limits=LIMITS)
    made["cameras"]["cam_front"][0]["data"] = data
    with pytest.raises(ContractError):
        read(made, MESSAGEPACK)


@pytest.mark.parametrize("value", [None, [], 7, "text"])
def test_what_is_no_object_is_no_observation_and_no_metadata(value: Any) -> None:
    """
    With one clear error each.
    """
    with pytest.raises(ContractError, match="expected an object"):
        read(value)
    with pytest.raises(ContractError, match="expected an object"):
        server_info_from(value, policy="act")


def test_metadata_goes_there_and_back() -> None:
    """
    What the policy says, and what the server speaks.
    """
    server = HttpServerInfo(
        policy=INFO,
        encodings=WireEncoding,
        content_types=ContentType,
        has_sessions=True,
        keeps_sessions_apart=False,
    )
    found = server_info_from(metadata_document(server), policy="act")
    assert attrs.evolve(found, policy=INFO) == server
    assert (("x", "y"), 16, 30.0) == (
        found.policy.action_names,
        found.policy.horizon,
        found.policy.rate_hz,
    )


def test_a_server_of_old_speaks_json_and_jpeg_and_knows_no_sessions() -> None:
    """
    Its metadata does not say so; what it says is kept.
    """
    found = server_info_from({"policy_contract": {"chunk_size": 16}}, policy="act")
    assert HttpServerInfo(policy=found.policy) == found
    assert 16 == found.policy.metadata["policy_contract"]["chunk_size"]
    found.require_speaks(encoding=WireEncoding.JPEG, content_type=JSON)
    with pytest.raises(ContractError, match=r"encoding: got raw, .* expected jpeg"):
        found.require_speaks(encoding=WireEncoding.RAW, content_type=JSON)
    with pytest.raises(ContractError, match="content_type: got application/msgpack"):
        found.require_speaks(encoding=WireEncoding.JPEG, content_type=MESSAGEPACK)


def test_a_newer_server_may_speak_more() -> None:
    """
    What is not known here is passed over.
    """
    said = {"encodings": ["jpeg", "av1"], "content_types": ["application/json", "text/x"]}
    found = server_info_from({"http": said}, policy="act")
    assert ((WireEncoding.JPEG,), (JSON,), False) == (
        found.encodings,
        found.content_types,
        found.has_sessions,
    )


@pytest.mark.parametrize(
    "http",
    [
        7,
        {},
        {"encodings": "jpeg", "content_types": []},
        {"encodings": ["jpeg"], "content_types": []},
        {"encodings": ["jpeg"], "content_types": ["application/json"], "sessions": 1},
        {"encodings": ["jpeg"], "content_types": ["application/json"], "sessions_apart": 0},
    ],
)
def test_metadata_that_is_none_is_refused(http: Any) -> None:
    """
    A server that says something says it right.
    """
    with pytest.raises(ContractError):
        server_info_from({"http": http}, policy="act")


@pytest.mark.parametrize("changes", [{"policy": None}, {"encodings": ["jpeg"]}, {"encodings": 7}])
def test_server_info_of_other_things_is_refused(changes: dict[str, Any]) -> None:
    """
    Members, not their text.
    """
    with pytest.raises(ContractError):
        HttpServerInfo(**{"policy": INFO, **changes})
