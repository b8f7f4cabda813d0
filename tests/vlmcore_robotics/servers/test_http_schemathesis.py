"""The HTTP server holds what its OpenAPI document says; ``nox -s schemathesis`` tries it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from http_server_cases import INFER, KEY, serving
from vlmcore.errors import ContractError
from vlmcore.policy.interface import PolicyInfo
from vlmcore.testing import ScriptedPolicy
from vlmcore_robotics.wire.frames import FrameKind, encode_frame
from vlmcore_robotics.wire.http_messages import ContentType
from vlmcore_robotics.wire.http_openapi import openapi

schemathesis = pytest.importorskip("schemathesis")
checks = pytest.importorskip("schemathesis.specs.openapi.checks")

INFO = PolicyInfo(name="scripted", action_names=("x", "y"))


def document() -> dict[str, Any]:
    """Take the published document, with a frame in it that is one: a schema knows no JPEG."""
    said = openapi()
    cameras = said["components"]["schemas"]["Observation"]["properties"]["cameras"]
    frame = cameras["additionalProperties"]["items"]["properties"]
    picture = json.loads(INFER.body)["cameras"]["front"][0]
    frame["encoding"]["enum"] = [picture["encoding"]]
    frame["data"] = {"enum": [picture["data"]]}
    return said


@schemathesis.serializer(ContentType.MESSAGEPACK.value)
def packed(_: Any, value: Any) -> bytes:
    """Write a body in MessagePack; what that cannot hold is none."""
    try:
        return encode_frame(value, kind=FrameKind.REQUEST)
    except ContractError:
        return b""


SCHEMA = schemathesis.openapi.from_dict(document())


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Serve a policy that takes any observation."""
    policy = ScriptedPolicy(lambda _: np.zeros((3, 2)), info=INFO)
    with serving(policy, token=KEY) as where:
        yield where


@SCHEMA.parametrize()
def test_each_request_that_the_document_allows_or_forbids_is_answered_as_it_says(
    case: Any, url: str
) -> None:
    """
    With a status and a body that are in it, and no failure of the server's. What a schema cannot
    say is refused too: that 8.0 is no whole number, or that cameras have as many frames each.
    """
    case.call_and_validate(
        base_url=url,
        headers={"Authorization": f"Bearer {KEY.reveal()}"},
        timeout=10,
        excluded_checks=[checks.positive_data_acceptance],
    )
