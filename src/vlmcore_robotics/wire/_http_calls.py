"""What an HTTP request asks for, before its body is looked at."""

from __future__ import annotations

import hmac
from collections.abc import Mapping

import attrs

from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError, PolicyStatusError
from vlmcore.secrets import Secret
from vlmcore_robotics.wire.http_messages import (
    REQUEST_ID,
    SESSION_ID,
    ContentType,
    HttpEndpoint,
    HttpRequest,
    require_id,
)

__all__ = ["HttpCall", "routed"]


@attrs.frozen(kw_only=True, eq=False)
class HttpCall:
    """
    What a client asks, at the server's end.

    Attributes:
        endpoint: What is asked.
        content_type: How the body is written.
        answer_type: How the answer is to be written.
        request_id: The client's id of the request, which the answer repeats.
        session: Which session it belongs to.
        observation: What the policy is to act on; only for ``INFER``.
    """

    endpoint: HttpEndpoint
    content_type: ContentType = ContentType.JSON
    answer_type: ContentType = ContentType.JSON
    request_id: str | None = None
    session: str | None = None
    observation: Observation | None = None


def routed(request: HttpRequest, *, policy: str, token: Secret | None) -> HttpCall:
    """
    Find out what is asked, by whom, and how the body is written.

    Raises:
        PolicyStatusError: If nothing that there is; the status is what to answer with.
    """
    path = request.path.partition("?")[0]
    endpoint = next((each for each in HttpEndpoint if each.path == path), None)
    if endpoint is None:
        listed = ", ".join(each.path for each in HttpEndpoint)
        raise PolicyStatusError(policy, f"path: got {path!r:.80}, expected one of {listed}", 404)
    if request.method != endpoint.method:
        raise PolicyStatusError(
            policy, f"method: got {request.method!r:.20}, expected {endpoint.method}", 405
        )
    if endpoint is HttpEndpoint.HEALTH:
        return HttpCall(endpoint=endpoint)
    headers = request.headers
    if token is not None and not _is_let_in(headers.get("authorization", ""), token):
        raise PolicyStatusError(
            policy, "authorization: got no token or another, expected the server's", 401
        )
    try:
        ids = [
            require_id(name, headers[name]) if name in headers else None
            for name in (REQUEST_ID, SESSION_ID)
        ]
    except ContractError as error:
        raise PolicyStatusError(policy, str(error), 400) from error
    call = HttpCall(
        endpoint=endpoint, request_id=ids[0], session=ids[1], answer_type=_accepted(headers)
    )
    if endpoint.method == "GET":
        return call
    try:
        content_type = ContentType.of(headers.get("content-type", ""))
    except ContractError as error:
        raise PolicyStatusError(policy, str(error), 415) from error
    return attrs.evolve(call, content_type=content_type)


def _accepted(headers: Mapping[str, str]) -> ContentType:
    is_packed = ContentType.MESSAGEPACK.value in headers.get("accept", "").lower()
    return ContentType.MESSAGEPACK if is_packed else ContentType.JSON


def _is_let_in(header: str, token: Secret) -> bool:
    """Compare in a time that does not tell how much of it is right."""
    scheme, _, said = header.partition(" ")
    sent = said.strip().encode("utf-8", "surrogateescape")
    return scheme.lower() == "bearer" and hmac.compare_digest(sent, token.reveal().encode())
