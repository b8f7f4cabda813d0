"""What an HTTP server answered, or with which words and which status it failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from vlmcore.errors import ContractError, PolicyProtocolError, PolicyStatusError
from vlmcore.limits import HttpLimits, require_at_most
from vlmcore.secrets import Secret
from vlmcore_robotics.wire._blame import blamed, without, words_of
from vlmcore_robotics.wire.frames import FrameKind
from vlmcore_robotics.wire.http_messages import REQUEST_ID, ContentType, HttpResponse, read_body

__all__ = ["Terms", "opened", "require_ok"]


@attrs.frozen(kw_only=True)
class Terms:
    """Whose answers are read, and how much of them."""

    policy: str
    token: Secret | None
    limits: HttpLimits


def opened(
    response: HttpResponse,
    kind: FrameKind,
    terms: Terms,
    *,
    request_id: str | None = None,
) -> Any:
    """
    Read the body of an answer, unless its status says that something failed.

    Raises:
        PolicyStatusError: If it does; the problem is the server's words.
        PolicyProtocolError: If the body is not of its type, or it answers another request.
    """
    policy, token, limits = terms.policy, terms.token, terms.limits
    if response.status != 200:
        raise PolicyStatusError(policy, _failure(response, token, limits), response.status)
    repeated = response.headers.get(REQUEST_ID)
    if request_id is not None and repeated is not None and repeated != request_id:
        came = words_of(repeated, token)
        problem = f"{REQUEST_ID}: got {came!r:.80}, expected {request_id!r}: a late answer"
        raise PolicyProtocolError(policy, problem, "theirs")
    said = blamed(policy, token, lambda: _body(response, kind, limits))
    return without(said, token) if kind is FrameKind.METADATA else said


def require_ok(said: Any, *, policy: str) -> None:
    """
    Require ``{"status": "ok"}``.

    Raises:
        PolicyProtocolError: If it is something else: somebody else answers there.
    """
    if not isinstance(said, Mapping) or said.get("status") != "ok":
        problem = "status: got another answer, expected 'ok'"
        raise PolicyProtocolError(policy, problem, "theirs")


def _body(response: HttpResponse, kind: FrameKind, limits: HttpLimits) -> Any:
    said = response.headers.get("content-type")
    content_type = ContentType.JSON if said is None else ContentType.of(said)
    return read_body(response.body, content_type, kind=kind, limits=limits)


def _failure(response: HttpResponse, token: Secret | None, limits: HttpLimits) -> str:
    """Take the server's own words, or say what came instead, as from a proxy before it."""
    try:
        require_at_most("max_metadata_bytes", len(response.body), limits.max_metadata_bytes)
        said = _body(response, FrameKind.METADATA, limits)
    except ContractError:
        said = None
    if isinstance(said, Mapping) and said.get("error") is not None:
        return words_of(said["error"], token)
    came = response.headers.get("content-type", "no content type")
    return words_of(f"an error without words of the policy's ({came})", token)
