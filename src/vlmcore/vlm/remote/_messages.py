"""Anthropic's messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from vlmcore.errors import ContractError
from vlmcore.secrets import Secret
from vlmcore.vlm.generation import GenerationOptions
from vlmcore.vlm.remote._codecs import Question, base64_of
from vlmcore.vlm.remote._draft import Draft
from vlmcore.vlm.remote._fields import items, number, part, text
from vlmcore.vlm.structure_requests import StructureStyle, structure_fields, structure_words

__all__ = ["MessagesCodec"]

_VERSION = "2023-06-01"
_FEWEST_THOUGHTS = 1024  # tokens
_READ = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


@attrs.frozen(kw_only=True)
class MessagesCodec:
    """Writes and reads messages."""

    path: str = "/messages"
    done_here: str = "stop_sequences"

    def check(self, options: GenerationOptions, effort: str) -> None:
        """Refuse options that there is no field for."""
        del effort
        if options.seed is not None:
            raise ContractError("seed", "got one, expected none: the server takes none")
        if options.repetition_penalty != 1.0:
            raise ContractError(
                "repetition_penalty", "got one, expected none: the server takes none"
            )
        if options.temperature > 1.0:
            raise ContractError("temperature", f"got {options.temperature}, expected at most 1")
        if options.thinking and options.max_new_tokens < 2 * _FEWEST_THOUGHTS:
            raise ContractError(
                "max_new_tokens",
                f"got {options.max_new_tokens}, expected {2 * _FEWEST_THOUGHTS} or more to think",
            )

    def headers(self, key: Secret | None) -> list[tuple[str, str]]:
        """Say who asks."""
        known = [] if key is None else [("x-api-key", key.reveal())]
        return [("anthropic-version", _VERSION), *known]

    def request(self, question: Question) -> dict[str, Any]:
        """Write a request."""
        options, style = question.options, StructureStyle.ANTHROPIC
        fields: dict[str, Any] = {
            "model": question.model,
            "max_tokens": options.max_new_tokens,
            "messages": [{"role": "user", "content": self._content(question)}],
            "stream": question.streams,
        }
        if question.prompt.system:
            fields["system"] = question.prompt.system
        if options.thinking:
            budget = max(_FEWEST_THOUGHTS, options.max_new_tokens // 2)
            fields["thinking"] = {"type": "enabled", "budget_tokens": budget}
        else:  # who thinks is sampled as the server likes
            fields["temperature"] = options.temperature
            if options.top_p != 1.0:
                fields["top_p"] = options.top_p
            if options.top_k is not None:
                fields["top_k"] = options.top_k
        stops = [stop for stop in options.stop if stop.strip()]
        if stops:
            fields["stop_sequences"] = stops
        fields |= structure_fields(options.output, style)
        if question.effort:
            fields["output_config"] = {
                **fields.get("output_config", {}),
                "effort": question.effort,
            }
        kept = {name: value for name, value in fields.items() if name not in question.left_out}
        return kept | dict(question.more)

    def replaceable(self, question: Question) -> tuple[str, ...]:
        """Name what the caller did not ask for, and what is done here too."""
        greedy = ("temperature",) if question.options.temperature == 0 else ()
        return (self.done_here, *greedy)

    def read_event(self, event: Mapping[str, Any], draft: Draft) -> None:
        """Read one event."""
        match event.get("type"):
            case "message_start":
                self._read_about(part(event, "message"), draft)
            case "content_block_start":
                self._read_block(part(event, "content_block"), draft)
            case "content_block_delta":
                self._read_block(part(event, "delta"), draft)
            case "message_delta":
                reason = text(part(event, "delta"), "stop_reason", is_name=True)
                draft.finish_reason = reason or draft.finish_reason
                self._read_usage(part(event, "usage"), draft)
            case "message_stop":
                draft.is_whole = True
            case _:
                pass  # pings, ends of blocks, and what will be invented

    def read_whole(self, document: Mapping[str, Any], draft: Draft) -> None:
        """Read an answer that came whole."""
        self._read_about(document, draft)
        for block in items(document, "content"):
            self._read_block(block, draft)
        draft.finish_reason = text(document, "stop_reason", is_name=True)
        draft.is_whole = document.get("type") == "message"

    def _content(self, question: Question) -> list[dict[str, Any]]:
        content: list[dict[str, Any]] = []
        for picture in question.pictures:
            if picture.caption:
                content.append({"type": "text", "text": picture.caption})
            source = {
                "type": "base64",
                "media_type": picture.media_type,
                "data": base64_of(picture),
            }
            content.append({"type": "image", "source": source})
        words = structure_words(question.options.output, StructureStyle.ANTHROPIC)
        asked = question.prompt.text
        content.append({"type": "text", "text": f"{asked}\n\n{words}" if words else asked})
        return content

    def _read_block(self, block: Mapping[str, Any], draft: Draft) -> None:
        draft.write(text(block, "text"))
        draft.think(text(block, "thinking"))

    def _read_about(self, message: Mapping[str, Any], draft: Draft) -> None:
        draft.model = text(message, "model", is_name=True)
        draft.response_id = text(message, "id", is_name=True)
        self._read_usage(part(message, "usage"), draft)

    def _read_usage(self, usage: Mapping[str, Any], draft: Draft) -> None:
        counts = [number(usage, name) for name in _READ]
        if counts[0] is not None:
            draft.prompt_tokens = sum(count or 0 for count in counts)
            draft.cached_tokens = counts[-1]
        written = number(usage, "output_tokens")
        draft.new_tokens = draft.new_tokens if written is None else written
