"""Tests of `vlmcore_robotics.wire.http_openapi`: what is published is what is read and written."""

from __future__ import annotations

import json
from typing import Any

import attrs
import jsonschema
import pytest

from groot_cases import seen
from vlmcore.contracts.actions import ActionChunk
from vlmcore.policy.interface import PolicyInfo
from vlmcore_robotics.wire.http_frames import WireEncoding
from vlmcore_robotics.wire.http_messages import ContentType, HttpEndpoint
from vlmcore_robotics.wire.http_metadata import HttpServerInfo
from vlmcore_robotics.wire.http_openapi import openapi
from vlmcore_robotics.wire.http_v1 import HttpCall, HttpCodec

CODEC = HttpCodec(policy="act", action_names=("x",))
CALL = HttpCall(endpoint=HttpEndpoint.INFER)
CHUNK = ActionChunk(values=[[0.5]], names=("x",), source="act", observed_at_s=0.0)
SERVER = HttpServerInfo(
    policy=PolicyInfo(name="act"), encodings=WireEncoding, content_types=ContentType
)


def check(name: str, body: bytes) -> None:
    document = openapi()
    schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    jsonschema.Draft202012Validator(schema).validate(json.loads(body))


@pytest.mark.parametrize("encoding", WireEncoding)
def test_what_a_client_writes_is_what_is_published(encoding: WireEncoding) -> None:
    """
    In each encoding.
    """
    codec = attrs.evolve(CODEC, encoding=encoding)
    check("Observation", codec.encode_request(seen()).body)
    check("Reset", codec.encode_reset(session="s1").body)


def test_what_a_server_writes_is_what_is_published() -> None:
    """
    Answers, failures, metadata.
    """
    answer = CODEC.encode_answer(CHUNK, CALL, timing_ms={"infer": 1.0}, policy={"type": "act"})
    check("Answer", answer.body)
    check("Failure", CODEC.encode_failure("no", 500).body)
    check("Ok", CODEC.encode_ok(CALL).body)
    check("Metadata", CODEC.encode_metadata(SERVER, CALL).body)


@pytest.mark.parametrize(
    "wrong",
    [{}, {"state": [], "task": "x", "cameras": {}}, {"state": ["1"], "task": "x", "cameras": {}}],
)
def test_what_is_refused_is_refused_by_the_published_schema(wrong: Any) -> None:
    """
    A client finds out before it sends.
    """
    with pytest.raises(jsonschema.ValidationError):
        check("Observation", json.dumps(wrong).encode())


def test_every_endpoint_and_every_status_of_ours_is_published() -> None:
    """
    Health needs no token.
    """
    paths = openapi()["paths"]
    for endpoint in HttpEndpoint:
        operation = paths[endpoint.path][endpoint.method.lower()]
        assert {"200", "405"} <= operation["responses"].keys()
        assert (endpoint is HttpEndpoint.HEALTH) == ("security" not in operation)
    assert {"400", "401", "404", "413", "415", "422", "500", "503"} <= (
        paths["/v1/infer"]["post"]["responses"].keys()
    )
