"""
What was measured in one request: raw events, so that every figure can be made from them again.

Times are whole nanoseconds since the beginning of the run, on one monotonic clock. Since the clock
itself may have run for months, times of it would not fit into the numbers of JSON.
"""

from __future__ import annotations

import enum
import hashlib
from itertools import pairwise
from typing import Any

import attrs

from vlmcore._arguments import require_characters, require_kind, require_switch, shown
from vlmcore._arrays import require_member, require_name
from vlmcore.errors import ContractError
from vlmcore.limits import SampleLimits, require_at_most

__all__ = [
    "Channel",
    "Chunk",
    "Failure",
    "FailureKind",
    "Phase",
    "Sample",
    "TokenSource",
    "Usage",
]

_LIMITS = SampleLimits()


class Phase(enum.Enum):
    """What a sample is for. Figures are never made of samples of more than one phase."""

    WARM_UP = "warm-up"  # kept as evidence, in no figure
    STEADY = "steady"  # of a target that is warm
    COLD_START = "cold-start"  # of a process that was just started


class Channel(enum.Enum):
    """What the tokens of a chunk are."""

    TEXT = "text"  # of the answer
    REASONING = "reasoning"  # thought before the answer
    TOOL = "tool"  # of a call of a tool
    NONE = "none"  # there are none: a role, a usage, a sign of life


class TokenSource(enum.Enum):
    """Who counted tokens. Chunks are not counted: one may hold several tokens, or none."""

    SERVER = "server"  # told by the server
    MODEL = "model"  # counted by the model in this process
    TOKENIZER = "tokenizer"  # counted afterwards, from the text


class FailureKind(enum.Enum):
    """Why a request failed."""

    SERVER_ERROR = "server_error"  # the server said so, in its status or in the stream
    REFUSED = "refused"  # the server did not take the request
    UNREACHABLE = "unreachable"  # nobody answered
    TIMEOUT = "timeout"  # it did not end before the deadline
    TRUNCATED_STREAM = "truncated_stream"  # it ended without a word that it was whole
    PROTOCOL = "protocol"  # what came cannot be read
    GENERATION = "generation"  # the model in this process failed
    MEMORY = "memory"  # it did not fit into memory
    CANCELLED = "cancelled"  # the caller stopped it


@attrs.frozen(kw_only=True)
class Chunk:
    """
    One piece of an answer, as it arrived.

    Attributes:
        at_ns: When its bytes were there, before they were parsed.
        channel: What its tokens are.
        characters: How many characters it added to the answer; 0 for a token whose text is held
            back until it is whole.
        tokens: How many tokens it holds, if that was told; ``None`` if not.

    Raises:
        ContractError: If a field is not as described.
    """

    at_ns: int
    channel: Channel = Channel.TEXT
    characters: int
    tokens: int | None = None

    def __attrs_post_init__(self) -> None:
        _require_whole("at_ns", self.at_ns, 0, _LIMITS.max_ns)
        require_member(Channel, channel=self.channel)
        _require_whole("characters", self.characters, 0, _LIMITS.max_text_characters)
        _require_known("tokens", self.tokens, 0, _LIMITS.max_tokens)
        if self.channel is Channel.NONE and self.has_tokens:
            raise ContractError("channel", f"got {self.channel}, expected that of its tokens")

    @property
    def has_tokens(self) -> bool:
        """Whether there is anything in it that the model generated."""
        return self.characters > 0 or bool(self.tokens)


@attrs.frozen(kw_only=True)
class Usage:
    """
    How many tokens a request took; ``None`` is what nobody told.

    Attributes:
        source: Who counted them.
        prompt_tokens: Tokens that the model was given, those of images included.
        cached_tokens: How many of these it had kept from earlier requests.
        generated_tokens: All that it wrote, those of the reasoning included.
        reasoning_tokens: How many of these were reasoning.

    Raises:
        ContractError: If a field is not as described.
    """

    source: TokenSource
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    generated_tokens: int | None = None
    reasoning_tokens: int | None = None

    def __attrs_post_init__(self) -> None:
        require_member(TokenSource, source=self.source)
        for field in ("prompt_tokens", "cached_tokens", "generated_tokens", "reasoning_tokens"):
            _require_known(field, getattr(self, field), 0, _LIMITS.max_tokens)


@attrs.frozen(kw_only=True)
class Failure:
    """
    Why a request failed.

    Attributes:
        kind: In one word.
        message: What was said, secrets taken out by whoever heard it; empty if nothing was.

    Raises:
        ContractError: If a field is not as described.
    """

    kind: FailureKind
    message: str = ""

    def __attrs_post_init__(self) -> None:
        require_member(FailureKind, kind=self.kind)
        _require_text("message", self.message, _LIMITS.max_message_characters)


def _chunks(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@attrs.frozen(kw_only=True)
class Sample:
    """
    What was measured in one request: when what happened, and what came of it.

    Times follow one another as the fields do. ``None`` is what did not happen, or was not seen: a
    model in this process has no headers, and a request that failed may have stopped anywhere.

    Attributes:
        case: The name of the case of the suite.
        target: The name of what was asked.
        phase: What the sample is for.
        block: The number of its block in the plan, from 0.
        leg: The number of its leg in the block, from 0.
        scheduled_ns: When it was due, in an open loop; ``None`` in a closed one.
        request_ns: When the caller began: nothing was read or encoded yet.
        prepared_ns: When the request was complete: images decoded, resized and encoded.
        sent_ns: When its last byte was handed to the network.
        headers_ns: When the head of the response was there.
        chunks: The pieces of the answer, the empty ones too; one piece if it was not streamed.
        closed_ns: When nothing more could come.
        streamed: Whether the answer came while it was written.
        text: The whole answer, or what came of it, with nothing taken away.
        reasoning: What the model thought, kept apart.
        finish_reason: Why the answer ended, in the word of who said so; ``None`` if nobody did.
        usage: How many tokens it took; ``None`` if nobody told.
        failure: Why it failed; ``None`` if it did not.
        attempts: How often it was asked.
        peak_memory_bytes: The most memory that the model took; ``None`` if not measured.

    Raises:
        ContractError: If a field is not as described, or the times are out of order.
        LimitExceededError: If there are more chunks than `vlmcore.limits.SampleLimits` allow.

    Example:
        >>> answer = Chunk(at_ns=9_000_000, characters=3)
        >>> sample = Sample(
        ...     case="dog", target="mine", request_ns=0, chunks=[answer], closed_ns=9_500_000,
        ...     text="dog", finish_reason="stop",
        ... )
        >>> sample.first_token_ns, sample.excluded
        (9000000, '')
    """

    case: str
    target: str
    phase: Phase = Phase.STEADY
    block: int = 0
    leg: int = 0
    scheduled_ns: int | None = None
    request_ns: int
    prepared_ns: int | None = None
    sent_ns: int | None = None
    headers_ns: int | None = None
    chunks: tuple[Chunk, ...] = attrs.field(default=(), converter=_chunks, repr=False)
    closed_ns: int
    streamed: bool = True
    text: str = ""
    reasoning: str = ""
    finish_reason: str | None = None
    usage: Usage | None = None
    failure: Failure | None = None
    attempts: int = 1
    peak_memory_bytes: int | None = None

    def __attrs_post_init__(self) -> None:
        for field in ("case", "target"):
            require_name(field, getattr(self, field), max_characters=_LIMITS.max_name_characters)
        require_member(Phase, phase=self.phase)
        require_switch(streamed=self.streamed)
        for field in ("block", "leg", "attempts"):
            fewest = int(field == "attempts")
            _require_whole(field, getattr(self, field), fewest, _LIMITS.max_requests)
        _require_known("peak_memory_bytes", self.peak_memory_bytes, 0, _LIMITS.max_memory_bytes)
        for field in ("text", "reasoning"):
            _require_text(field, getattr(self, field), _LIMITS.max_text_characters)
        if self.finish_reason is not None:
            _require_text("finish_reason", self.finish_reason, _LIMITS.max_name_characters)
        for field, kind in (("usage", Usage), ("failure", Failure)):
            if getattr(self, field) is not None:
                require_kind(field, getattr(self, field), kind)
        self._check_chunks()
        self._check_times()

    def _check_chunks(self) -> None:
        require_kind("chunks", self.chunks, tuple)
        require_at_most("max_chunks", len(self.chunks), _LIMITS.max_chunks)
        for i, chunk in enumerate(self.chunks):
            require_kind(f"chunks[{i}]", chunk, Chunk)

    def _check_times(self) -> None:
        for field in ("request_ns", "closed_ns"):
            _require_whole(field, getattr(self, field), 0, _LIMITS.max_ns)
        marks = ("scheduled_ns", "request_ns", "prepared_ns", "sent_ns", "headers_ns")
        for field in marks:
            _require_known(field, getattr(self, field), 0, _LIMITS.max_ns)
        times = [
            *((field, getattr(self, field)) for field in marks),
            *((f"chunks[{i}].at_ns", chunk.at_ns) for i, chunk in enumerate(self.chunks)),
            ("closed_ns", self.closed_ns),
        ]
        known = [(field, time) for field, time in times if time is not None]
        for (before, earlier), (after, later) in pairwise(known):
            if later < earlier:
                raise ContractError(
                    after, f"got {later}, expected at least that of {before}, {earlier}"
                )

    @property
    def start_ns(self) -> int:
        """
        When the caller began to wait, which is when the request was due, or else when it was made.

        A request that a busy client sends late has waited, although nothing was sent.
        """
        return self.request_ns if self.scheduled_ns is None else self.scheduled_ns

    @property
    def first_chunk_ns(self) -> int | None:
        """When the first piece came, even if it was empty."""
        return self.chunks[0].at_ns if self.chunks else None

    @property
    def first_token_ns(self) -> int | None:
        """When the first token came, of whatever channel."""
        return next((chunk.at_ns for chunk in self.chunks if chunk.has_tokens), None)

    @property
    def first_text_ns(self) -> int | None:
        """When the first characters of the answer itself came."""
        texts = (c.at_ns for c in self.chunks if c.channel is Channel.TEXT and c.characters)
        return next(texts, None)

    @property
    def last_token_ns(self) -> int | None:
        """When the last token came, of whatever channel."""
        return next((chunk.at_ns for chunk in reversed(self.chunks) if chunk.has_tokens), None)

    @property
    def generated_tokens(self) -> int | None:
        """How many tokens were generated, the reasoning included; ``None`` if nobody told."""
        return None if self.usage is None else self.usage.generated_tokens

    @property
    def text_sha256(self) -> str:
        """The SHA-256 of the answer as UTF-8, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def excluded(self) -> str:
        """Why no figure is made from this sample; empty if figures are."""
        if self.failure is not None:
            return f"failed: {self.failure.kind.value}"
        if self.attempts > 1:
            return f"asked {self.attempts} times: figures would hide the tries that failed"
        return "" if self.first_token_ns is not None else "empty output: no token came"


def _require_whole(field: str, value: Any, fewest: int, most: int) -> None:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or not fewest <= value <= most:
        raise ContractError(
            field, f"got {shown(value)}, expected a whole number from {fewest} to {most}"
        )


def _require_known(field: str, value: Any, fewest: int, most: int) -> None:
    if value is not None:
        _require_whole(field, value, fewest, most)


def _require_text(field: str, text: Any, most_characters: int) -> None:
    require_kind(field, text, str)
    if len(text) > most_characters:
        raise ContractError(
            field, f"got {len(text)} characters, expected at most {most_characters}"
        )
    require_characters(field, text)
