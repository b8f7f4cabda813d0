"""
The messages of the HTTP protocol, without a connection: method, path, headers and body.

Bodies are JSON, or MessagePack where both ends know it. What is newer than the first version of the
protocol stands in headers and in content types, which peers of old do not look at.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs

from vlmcore._arguments import require_kind
from vlmcore.contracts.json_text import read_json, write_json
from vlmcore.errors import ContractError
from vlmcore.limits import DocumentLimits, HttpLimits, WireLimits, require_at_most
from vlmcore_robotics.wire.frames import FrameKind, decode_frame, encode_frame

__all__ = [
    "ContentType",
    "HttpEndpoint",
    "HttpRequest",
    "HttpResponse",
    "read_body",
    "require_id",
    "write_body",
]

REQUEST_ID, SESSION_ID = "x-request-id", "x-session-id"
_ID = re.compile(r"[\x21-\x7e]{1,128}")


class ContentType(enum.Enum):
    """How a body is written; the value is its media type."""

    JSON = "application/json"
    MESSAGEPACK = "application/msgpack"

    @classmethod
    def of(cls, header: str) -> ContentType:
        """
        Read the header ``Content-Type``; parameters, as a charset, are not looked at.

        Raises:
            ContractError: If it is another type.
        """
        said = header.partition(";")[0].strip().lower()
        for known in cls:
            if said == known.value:
                return known
        listed = " or ".join(known.value for known in cls)
        raise ContractError("content-type", f"got {said!r:.80}, expected {listed}")


class HttpEndpoint(enum.Enum):
    """What a server can be asked; the value is the method and the path."""

    INFER = ("POST", "/v1/infer")
    RESET = ("POST", "/v1/reset")
    METADATA = ("GET", "/v1/metadata")
    HEALTH = ("GET", "/healthz")

    @property
    def method(self) -> str:
        """How it is asked."""
        return self.value[0]

    @property
    def path(self) -> str:
        """Where it stands below the address of the server."""
        return self.value[1]


def _headers(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise ContractError("headers", f"got {type(value).__name__}, expected names and values")
    found: dict[str, str] = {}
    for name, each in value.items():
        if not isinstance(name, str) or not isinstance(each, str):
            raise ContractError("headers", "got other things in it, expected texts")
        if name.lower() in found:
            raise ContractError("headers", f"got {name!r:.80} twice, expected each once")
        found[name.lower()] = each
    return MappingProxyType(found)


@attrs.frozen(kw_only=True)
class HttpRequest:
    """
    What a client sends.

    Attributes:
        method: As ``"POST"``.
        path: Below the address of the server, as ``"/v1/infer"``.
        headers: By their names in small letters. Tokens are among them: they are not shown.
        body: The bytes of the body.

    Raises:
        ContractError: If a field is not as described, or a header is there twice.
    """

    method: str
    path: str
    headers: Mapping[str, str] = attrs.field(converter=_headers, repr=False, hash=False)
    body: bytes = attrs.field(default=b"", repr=False)

    def __attrs_post_init__(self) -> None:
        for field, kind in (("method", str), ("path", str), ("body", bytes)):
            require_kind(field, getattr(self, field), kind)


@attrs.frozen(kw_only=True)
class HttpResponse:
    """
    What a server answers.

    Attributes:
        status: As 200.
        headers: By their names in small letters.
        body: The bytes of the body.

    Raises:
        ContractError: If a field is not as described, or a header is there twice.
    """

    status: int
    headers: Mapping[str, str] = attrs.field(converter=_headers, repr=False, hash=False)
    body: bytes = attrs.field(default=b"", repr=False)

    def __attrs_post_init__(self) -> None:
        if type(self.status) is not int or not 100 <= self.status <= 599:
            raise ContractError("status", f"got {self.status!r:.80}, expected 100 to 599")
        require_kind("body", self.body, bytes)


def read_body(
    body: bytes, content_type: ContentType, *, kind: FrameKind, limits: HttpLimits
) -> Any:
    """
    Read a body within the limits.

    Raises:
        ContractError: If it is not of its type.
        LimitExceededError: If it is larger than *limits* allow.
    """
    most = _most(kind, limits)
    require_at_most(f"max_{kind.value}_bytes", len(body), most)
    match content_type:
        case ContentType.JSON:
            return read_json(body, limits=DocumentLimits(max_document_bytes=most))
        case ContentType.MESSAGEPACK:
            return decode_frame(body, kind=kind, limits=_wire(limits))


def write_body(
    value: Any, content_type: ContentType, *, kind: FrameKind, limits: HttpLimits
) -> bytes:
    """
    Write a body.

    Raises:
        ContractError: If there is something in *value* that it cannot hold, as NaN in JSON.
        LimitExceededError: If it is larger than *limits* allow.
    """
    match content_type:
        case ContentType.JSON:
            body = write_json(value, indent=None).encode()
        case ContentType.MESSAGEPACK:
            body = encode_frame(value, kind=kind, limits=_wire(limits))
    require_at_most(f"max_{kind.value}_bytes", len(body), _most(kind, limits))
    return body


def require_id(field: str, text: Any) -> str:
    """
    Require an id of a request or a session: 1 to 128 visible characters of ASCII.

    Raises:
        ContractError: If it is none.
    """
    if not isinstance(text, str) or not _ID.fullmatch(text):
        raise ContractError(
            field, f"got {text!r:.80}, expected 1 to 128 visible characters of ASCII"
        )
    return text


def _most(kind: FrameKind, limits: HttpLimits) -> int:
    most: int = getattr(limits, f"max_{kind.value}_bytes")
    return most


def _wire(limits: HttpLimits) -> WireLimits:
    return WireLimits(
        max_request_bytes=limits.max_request_bytes,
        max_response_bytes=limits.max_response_bytes,
        max_metadata_bytes=limits.max_metadata_bytes,
    )
