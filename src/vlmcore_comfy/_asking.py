"""One request to a ComfyUI over HTTP, and its answer, bounded; no proxy of the environment."""

from __future__ import annotations

from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from vlmcore.contracts.json_text import read_json
from vlmcore.endpoint import Endpoint
from vlmcore.errors import ContractError, GraphServerError
from vlmcore.limits import GraphLimits

__all__ = ["ask", "ask_json"]

_MOST_BYTES = GraphLimits().max_file_bytes


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Follow nothing: ComfyUI sends nobody elsewhere."""


_opener = build_opener(ProxyHandler({}), _NoRedirects())


def ask(
    endpoint: Endpoint,
    path: str,
    *,
    query: Mapping[str, str] | None = None,
    body: bytes | None = None,
    timeout_s: float,
) -> tuple[int, bytes]:
    """
    Ask, and give the status and the body of the answer.

    Raises:
        GraphServerError: If there is no whole answer, or one of more than 256 MiB.
    """
    url = f"{endpoint.url.rstrip('/')}{path}{'?' + urlencode(query) if query else ''}"
    request = Request(url, data=body, headers={"Content-Type": "application/json"})  # noqa: S310 - an `Endpoint` is HTTP
    try:
        with _opener.open(request, timeout=timeout_s) as answer:
            return answer.status, _whole(endpoint, answer)
    except HTTPError as error:
        with error:
            return error.code, _whole(endpoint, error)
    except TimeoutError:
        raise GraphServerError(endpoint.url, f"does not answer within {timeout_s:g} s") from None
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, TimeoutError):
            problem = f"does not answer within {timeout_s:g} s"
        elif isinstance(reason, ConnectionRefusedError):
            problem = "nothing listens there; is ComfyUI running?"
        else:
            problem = f"the connection failed: {reason}"
        raise GraphServerError(endpoint.url, problem) from None


def ask_json(
    endpoint: Endpoint, path: str, *, body: bytes | None = None, timeout_s: float
) -> tuple[int, dict[str, Any]]:
    """
    Ask, and give the status and the object of the answer; an answer without a body is empty.

    Raises:
        GraphServerError: As `ask`, or if the answer is no JSON object.
    """
    status, answer = ask(endpoint, path, body=body, timeout_s=timeout_s)
    if not answer.strip():
        return status, {}
    try:
        value = read_json(answer)
    except ContractError:
        value = None
    if not isinstance(value, dict):
        raise GraphServerError(
            endpoint.url, f"answered {status} with what is no JSON object; is it ComfyUI?"
        )
    return status, value


def _whole(endpoint: Endpoint, answer: Any) -> bytes:
    data: bytes = answer.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise GraphServerError(endpoint.url, f"answered with more than {_MOST_BYTES >> 20} MiB")
    return data
