"""Errors that servers answer with, in the many forms that they have."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from vlmcore.contracts.json_text import read_json
from vlmcore.errors import (
    ContractError,
    ModelNotServedError,
    ModelServerBusyError,
    ModelServerKeyError,
    ModelServerRateLimitError,
    ModelServerRefusedError,
)
from vlmcore.vlm.remote._fields import items, part, text

__all__ = ["Refusal", "refusal_in", "refusal_of"]

_TIMES_UP = (408, 425)
_NO_CREDIT = ("insufficient_quota", "billing", "credit")
_KINDS: tuple[tuple[type[ModelServerRefusedError], tuple[str, ...]], ...] = (
    (ModelServerRateLimitError, ("rate_limit", "too_many_requests")),
    (ModelServerKeyError, ("authentication", "permission", "invalid_api_key", "unauthorized")),
    (ModelNotServedError, ("model_not_found", "notfounderror")),
    (ModelServerBusyError, ("overloaded", "server_error", "internal", "api_error", "unavailable")),
)
_MODEL = re.compile(r"\bmodels?\b", re.IGNORECASE)
_TAGS = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>|\s+", re.DOTALL | re.IGNORECASE)


@attrs.frozen(kw_only=True)
class Refusal:
    """
    An error of a server.

    Attributes:
        status: Of HTTP, or what stands for it in the error.
        words: What it says.
        code: What it calls the error.
        retry_after_s: When it may be asked again.
        whole: All that it said, to find the name of a field in it.
    """

    status: int
    words: str
    code: str = ""
    retry_after_s: float | None = None
    whole: str = ""

    @property
    def may_pass(self) -> bool:
        """Whether the same request may be answered a little later."""
        if any(word in self.code for word in _NO_CREDIT):
            return False
        kind = self._kind()
        return kind in (ModelServerRateLimitError, ModelServerBusyError) or self.status in _TIMES_UP

    @property
    def is_a_bug(self) -> bool:
        """Whether it failed in a way that some field of the request may have brought about."""
        return self.status in (200, 500) and self._kind() in (
            ModelServerRefusedError,
            ModelServerBusyError,
        )

    def names(self, field: str) -> bool:
        """Say whether it refuses the request for one of its fields."""
        return self.status in (400, 422) and f"{field}" in self.whole

    def error(
        self, model: str, *, text: str, redacted: Callable[[str], str]
    ) -> ModelServerRefusedError:
        """Say it in an error of ours."""
        words = redacted(self.words) or "it says nothing"
        code = redacted(self.code)
        return self._kind()(model, words, text, self.status, code, self.retry_after_s)

    def _kind(self) -> type[ModelServerRefusedError]:
        status, code = self.status, self.code.lower()
        if status in (401, 403):
            return ModelServerKeyError
        if status == 404 and _MODEL.search(self.words):
            return ModelNotServedError
        if status == 429:
            return ModelServerRateLimitError
        if status >= 500:
            return ModelServerBusyError
        for kind, words in _KINDS:
            if any(word in code for word in words):
                return kind
        return ModelServerRefusedError


def refusal_of(status: int, body: bytes, retry_after_s: float | None) -> Refusal:
    """Read an answer whose status is none of success."""
    whole = body.decode("utf-8", "replace")
    try:
        document = read_json(body)
    except ContractError:
        document = None
    found = refusal_in(document) if isinstance(document, dict) else None
    if found is None:
        plain = _TAGS.sub(" ", whole).strip()
        found = Refusal(status=status, words=" ".join(plain.split()))
    if 300 <= status < 400:
        words = f"no redirect is followed; {found.words}".removesuffix("; ")
        found = attrs.evolve(found, words=words)
    return attrs.evolve(found, status=status, retry_after_s=retry_after_s, whole=whole)


def refusal_in(document: Mapping[str, Any]) -> Refusal | None:
    """Find the error in a document that may be one, as some answers with status 200 are."""
    error = document.get("error")
    if isinstance(error, str) and error:
        return Refusal(status=200, words=error, whole=str(document))
    if isinstance(error, dict) and error:
        return _told(error, document)
    if document.get("object") == "error" or document.get("type") == "error":
        return _told(document, document)
    detail = document.get("detail")  # of FastAPI
    if isinstance(detail, str) and detail:
        return Refusal(status=200, words=detail, whole=str(document))
    faults = [
        f"{'.'.join(map(str, fault.get('loc', ())))}: {text(fault, 'msg')}"
        for fault in items(document, "detail")
    ]
    if faults:
        return Refusal(status=200, words="; ".join(faults), whole=str(document))
    message = text(document, "message")
    has_answer = "choices" in document or "output" in document or "content" in document
    return Refusal(status=200, words=message) if message and not has_answer else None


def _told(error: Mapping[str, Any], document: Mapping[str, Any]) -> Refusal:
    code = error.get("code")
    number = code if type(code) is int else None
    kind = code if isinstance(code, str) and code else text(error, "type")
    words = text(error, "message") or str(part(error, "message") or "")
    is_status = number is not None and 400 <= number <= 599
    return Refusal(
        status=number if is_status and number is not None else 200,
        words=words,
        code=kind if kind != "error" else "",
        whole=str(document),
    )
