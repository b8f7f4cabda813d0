"""The HTTP protocol as an OpenAPI document, made of the shapes that are read."""

from __future__ import annotations

from typing import Any

from vlmcore.contracts.shapes import Field, Flag, JsonObject, ListOf, Number, Record, Text
from vlmcore.limits import ContractLimits, DocumentLimits
from vlmcore_robotics.wire.http_documents import observation_kind
from vlmcore_robotics.wire.http_frames import WireEncoding
from vlmcore_robotics.wire.http_messages import (
    REQUEST_ID,
    SESSION_ID,
    ContentType,
    HttpEndpoint,
)

__all__ = ["openapi"]

_LIMITS = ContractLimits()
_STEP = ListOf(item=Number(), fewest=1, most=_LIMITS.max_actions)
_NAME = Text(longest=_LIMITS.max_name_characters)
_NAMES = ListOf(item=_NAME, fewest=1, most=_LIMITS.max_actions)
_ANSWER = Record(
    fields={
        "actions": Field(
            ListOf(item=_STEP, fewest=1, most=_LIMITS.max_horizon),
            "What the policy proposes, step by step.",
        ),
        "action_names": Field(_NAMES, "What the numbers of a step are.", optional=True),
        "server_timing": Field(
            JsonObject(), "How long parts of the work took, in milliseconds.", optional=True
        ),
        "policy": Field(JsonObject(), "What is told of the policy.", optional=True),
    }
)
_FAILURE = Record(
    fields={"error": Field(Text(longest=DocumentLimits().max_error_characters), "What went wrong.")}
)
_OK = Record(fields={"status": Field(Text(one_of=("ok",)), "All is well.")})
_SPEAKS = Record(
    fields={
        "encodings": Field(
            ListOf(item=Text(), fewest=1, most=len(WireEncoding)), "Of frames that are read."
        ),
        "content_types": Field(ListOf(item=Text(), fewest=1, most=len(ContentType)), "Of bodies."),
        "sessions": Field(Flag(), "Whether sessions and resets are known.", optional=True),
        "sessions_apart": Field(
            Flag(),
            "Whether each session has a policy of its own; if not, one resets it for all.",
            optional=True,
        ),
    }
)
_METADATA = Record(
    fields={
        "policy_info": Field(JsonObject(), "What the policy says about itself.", optional=True),
        "policy_contract": Field(JsonObject(), "The same, of servers of old.", optional=True),
        "http": Field(
            _SPEAKS, "What the server speaks; nothing means JSON and JPEG.", optional=True
        ),
    }
)
_FAILURES = {
    "400": "The body is not of its type, or an id is none.",
    "401": "No token, or another.",
    "403": "The request is of a page in a browser.",
    "404": "No such path.",
    "405": "Another method.",
    "408": "The body did not come in time.",
    "411": "The body has no length.",
    "413": "Something is larger than the limits.",
    "415": "Another content type.",
    "421": "The server is not known by that name.",
    "422": "The observation has faults, which are listed, or is not one for the policy.",
    "500": "The policy failed.",
    "503": "The server is busy; Retry-After says for how long, in seconds.",
}


def openapi() -> dict[str, Any]:
    """
    Say what the protocol is, as OpenAPI 3.1.

    Example:
        >>> sorted(openapi()["paths"])
        ['/healthz', '/v1/infer', '/v1/metadata', '/v1/reset']
    """
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "comfyui-vla-http-v1",
            "version": "1.1.0",
            "description": "A policy for robots, asked for its next actions. Version 1.1 adds "
            "headers, a path, encodings and MessagePack; peers of version 1.0 pass them over.",
        },
        "paths": {
            endpoint.path: {endpoint.method.lower(): _operation(endpoint)}
            for endpoint in HttpEndpoint
        },
        "components": {
            "schemas": _schemas(),
            "parameters": {
                "RequestId": _header(REQUEST_ID, "The answer repeats it."),
                "SessionId": _header(SESSION_ID, "Which episode the request belongs to."),
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _schemas() -> dict[str, Any]:
    observation = observation_kind(ContentType.JSON).json_schema()
    observation.pop("$schema")
    observation["properties"]["cameras"]["propertyNames"] = _NAME.schema()
    schemas = {
        "Observation": observation,
        "Answer": _ANSWER.schema(),
        "Failure": _FAILURE.schema(),
        "Ok": _OK.schema(),
        "Metadata": _METADATA.schema(),
        "Reset": {"type": "object"},
    }
    for open_one in (observation, schemas["Answer"], schemas["Ok"], schemas["Metadata"]):
        open_one["additionalProperties"] = True  # what a newer peer says more is passed over
    return schemas


def _operation(endpoint: HttpEndpoint) -> dict[str, Any]:
    says = {
        HttpEndpoint.INFER: ("infer", "Propose the next actions.", "Answer", "Observation"),
        HttpEndpoint.RESET: ("reset", "Forget the episode.", "Ok", "Reset"),
        HttpEndpoint.METADATA: ("metadata", "Say what the policy is.", "Metadata", None),
        HttpEndpoint.HEALTH: ("health", "Say whether all is well.", "Ok", None),
    }
    name, summary, answer, body = says[endpoint]
    operation: dict[str, Any] = {"operationId": name, "summary": summary}
    failures = dict(_FAILURES)
    if endpoint is HttpEndpoint.HEALTH:
        statuses = ("403", "405", "421", "500", "503")
        failures = {status: failures[status] for status in statuses}
    else:
        operation["parameters"] = [
            {"$ref": f"#/components/parameters/{each}"} for each in ("RequestId", "SessionId")
        ]
        operation["security"] = [{}, {"token": []}]
    if body is not None:
        operation["requestBody"] = {"required": True, "content": _content(body)}
    operation["responses"] = {
        "200": {"description": "Done.", "content": _content(answer)},
        **{
            status: {
                "description": meaning,
                "content": {ContentType.JSON.value: {"schema": _ref("Failure")}},
            }
            for status, meaning in failures.items()
        },
    }
    return operation


def _content(schema: str) -> dict[str, Any]:
    """Say that a body is JSON, or the same in MessagePack, where bytes are not base64."""
    packed = {"description": f"As {schema}, in MessagePack.", "type": "object"}
    return {
        ContentType.JSON.value: {"schema": _ref(schema)},
        ContentType.MESSAGEPACK.value: {"schema": packed},
    }


def _ref(schema: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{schema}"}


def _header(name: str, description: str) -> dict[str, Any]:
    schema = {"type": "string", "pattern": r"^[\x21-\x7e]{1,128}$"}
    return {"name": name, "in": "header", "description": description, "schema": schema}
