"""What is made of the bytes of an answer: events or a document, and errors wherever they stand."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from vlmcore._net.events import EventReader
from vlmcore._net.http_parts import Head
from vlmcore.errors import LimitExceededError
from vlmcore.limits import DocumentLimits, ModelServerLimits
from vlmcore.vlm.remote._codecs import Codec
from vlmcore.vlm.remote._draft import Draft
from vlmcore.vlm.remote._fields import part
from vlmcore.vlm.remote._refusals import Refusal, refusal_in, refusal_of
from vlmcore.vlm.remote.retrying import retry_after_s

__all__ = ["AnswerReader", "BadAnswerError", "RefusedError", "require_answered"]

_BOM = b"\xef\xbb\xbf"
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")  # of events; JSON begins otherwise
_LONGEST_FIELD = 6
_INNER = (b",", b"[", b"{")  # each value but the first has one before it
_ERROR_BYTES = 0x10000  # of an error that are read
_TOOLS = ("tool_calls", "function_call", "tool_use")
# What servers say of an answer that they gave up, or have yet to write; it looks like a whole one.
# "abort" is said by vLLM and SGLang (vllm-project/vllm, issue 57082), "insufficient_..." by
# DeepSeek, the last two by Gemini.
_GIVEN_UP = (
    "error",
    "abort",
    "cancelled",
    "failed",
    "queued",
    "in_progress",
    "insufficient_system_resource",
    "malformed_function_call",
    "other",
)


class BadAnswerError(Exception):
    """A server sent what is no answer."""


class RefusedError(Exception):
    """A server answered with an error of its own."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal)
        self.refusal = refusal


class AnswerReader:
    """
    Reads an answer into a draft. What it is, is told by how it begins: heads are often wrong.

    Args:
        codec: The protocol.
        draft: Where the answer is written.
        limits: How much is read.
    """

    def __init__(self, codec: Codec, draft: Draft, limits: ModelServerLimits) -> None:
        self._codec = codec
        self._draft = draft
        self._limits = limits
        self._documents = DocumentLimits(max_document_bytes=limits.max_event_bytes)
        self._events = EventReader(max_bytes=limits.max_event_bytes)
        self._head = Head(status=200, headers={})
        self._begin: bytes | None = b""  # until it is long enough to tell what it is
        self._is_stream = False
        self._text = bytearray()
        self._came = 0
        self.is_over = False

    def take(self, came: Head | bytes) -> Iterator[str]:
        """
        Take a part of what came, and give the pieces of the answer in it, event by event.

        Raises:
            RefusedError: If it is an error of the server.
            BadAnswerError: If it is no answer.
        """
        if isinstance(came, Head):
            self._head = came
            return
        if self.is_over:
            return
        self._came += len(came)
        if self._head.status >= 300:
            self._text += came[: _ERROR_BYTES - len(self._text)]
            self.is_over = len(self._text) >= _ERROR_BYTES
            return
        self._require("max_answer_bytes", self._came)
        if self._begin is None:
            yield from self._feed(came)
            return
        self._begin = (self._begin + came).removeprefix(_BOM).lstrip()
        if len(self._begin) >= _LONGEST_FIELD:
            yield from self._begun()

    def finish(self) -> Iterator[str]:
        """
        Take the end of what came, and give the pieces that it makes certain.

        Raises:
            RefusedError: If it is an error of the server.
            BadAnswerError: If it is no answer, or not all of one.
        """
        if self._head.status >= 300:
            wait_s = retry_after_s(self._head.headers)
            raise RefusedError(refusal_of(self._head.status, bytes(self._text), wait_s))
        if self._begin is not None:
            yield from self._begun()
        if self._is_stream:
            if not (self._draft.is_whole or self._draft.finish_reason):
                raise BadAnswerError("the stream ended before the answer was whole")
            return
        document = self._document(bytes(self._text))
        self._codec.read_whole(document, self._draft)
        yield from self._draft.take()
        if not self._draft.is_whole:
            raise BadAnswerError(f"its answer has none of the fields of one: {document!r:.200}")

    def _begun(self) -> Iterator[str]:
        begin, self._begin = self._begin or b"", None
        self._is_stream = begin.startswith(_FIELDS)
        if not self._is_stream and not begin.startswith(b"{"):
            if not begin:
                raise BadAnswerError("it sent nothing, expected an answer in JSON")
            kind = self._head.headers.get("content-type", "nothing that has a name")
            words = begin[:200].decode("utf-8", "replace")
            raise BadAnswerError(f"it sent {kind[:80]}, expected an answer in JSON: {words!r}")
        yield from self._feed(begin)

    def _feed(self, data: bytes) -> Iterator[str]:
        if not self._is_stream:
            self._text += data
            self._require("max_event_bytes", len(self._text))
            return
        try:
            for event in self._events.feed(data):
                self._take_event(event)
                yield from self._draft.take()
                if self.is_over:
                    return
        except LimitExceededError as error:
            raise BadAnswerError(f"it sent an event too large: {error}") from None

    def _take_event(self, event: bytes) -> None:
        if event.strip() == b"[DONE]":
            self._draft.is_whole = True
        elif event.strip():
            self._codec.read_event(self._document(event), self._draft)
        self.is_over = self._draft.is_over or self._draft.is_whole

    def _document(self, data: bytes) -> Mapping[str, Any]:
        """Read JSON, which may tell of an error."""
        # Not `read_json`, whose looks at each value take longer than all else that is done with an
        # event, many thousands of which may come in a second; only few fields of it are used.
        if sum(map(data.count, _INNER)) > self._documents.max_nodes:
            raise BadAnswerError(f"it sent more than {self._documents.max_nodes:,} values at once")
        try:
            document = json.loads(data.decode())
        except (ValueError, RecursionError) as error:  # ValueError: no UTF-8, or too many digits
            why = "nested too deep" if isinstance(error, RecursionError) else str(error)
            raise BadAnswerError(f"it sent what is no JSON: {why}") from None
        if not isinstance(document, dict):
            raise BadAnswerError(f"it sent {type(document).__name__}, expected an object")
        refusal = refusal_in(document)
        if refusal is None and "response" in document:
            refusal = refusal_in(part(document, "response"))
        if refusal is not None:
            raise RefusedError(refusal)
        return document

    def _require(self, limit: str, size: int) -> None:
        allowed: int = getattr(self._limits, limit)
        if size > allowed:
            raise BadAnswerError(f"{limit}: got {size}, limit is {allowed}")


def require_answered(draft: Draft) -> None:
    """
    Require that what a server said was all of an answer is one.

    Raises:
        BadAnswerError: If the server gave it up, called a tool instead, or wrote nothing at all.
    """
    reason = (draft.finish_reason or "").lower()
    if draft.is_over:
        return
    if reason in _GIVEN_UP:
        raise BadAnswerError(f"it sent no whole answer, and says {reason!r}")
    if reason in _TOOLS and not draft.text:
        raise BadAnswerError("it called a tool, expected an answer")
    if not reason and not draft.is_begun:
        raise BadAnswerError("it says that the answer is whole, and sent none")
