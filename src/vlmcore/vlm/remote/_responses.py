"""OpenAI's responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from vlmcore.errors import ContractError
from vlmcore.secrets import Secret
from vlmcore.vlm.generation import GenerationOptions
from vlmcore.vlm.remote._codecs import Question, data_url_of, lines_of
from vlmcore.vlm.remote._draft import Draft
from vlmcore.vlm.remote._fields import items, number, part, text
from vlmcore.vlm.structure_requests import StructureStyle, structure_fields, structure_words

__all__ = ["ResponsesCodec"]

_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")


@attrs.frozen(kw_only=True)
class ResponsesCodec:
    """Writes and reads responses. Stop texts are cut off here: the protocol has none."""

    path: str = "/responses"
    done_here: str = ""

    def check(self, options: GenerationOptions, effort: str) -> None:
        """Refuse options that there is no field for."""
        del effort
        for field, is_asked in (
            ("seed", options.seed is not None),
            ("top_k", options.top_k is not None),
            ("repetition_penalty", options.repetition_penalty != 1.0),
            ("thinking", options.thinking is not None),
        ):
            if is_asked:
                raise ContractError(field, "got one, expected none: the server takes none")

    def headers(self, key: Secret | None) -> list[tuple[str, str]]:
        """Say who asks."""
        return lines_of(key)

    def request(self, question: Question) -> dict[str, Any]:
        """Write a request."""
        options, prompt = question.options, question.prompt
        fields: dict[str, Any] = {
            "model": question.model,
            "input": [{"role": "user", "content": self._content(question)}],
            "max_output_tokens": options.max_new_tokens,
            "temperature": options.temperature,
            "stream": question.streams,
            "store": False,  # nothing is left there
        }
        if prompt.system:
            fields["instructions"] = prompt.system
        if options.top_p != 1.0:
            fields["top_p"] = options.top_p
        if question.effort:
            fields["reasoning"] = {"effort": question.effort}
        fields |= structure_fields(options.output, StructureStyle.OPENAI_RESPONSES)
        kept = {name: value for name, value in fields.items() if name not in question.left_out}
        return kept | dict(question.more)

    def replaceable(self, question: Question) -> tuple[str, ...]:
        """Name what the caller did not ask for."""
        return ("temperature",) if question.options.temperature == 0 else ()

    def read_event(self, event: Mapping[str, Any], draft: Draft) -> None:
        """Read one event."""
        kind = event.get("type")
        match kind:
            case "response.output_text.delta":
                draft.write(text(event, "delta"))
            case "response.reasoning_text.delta" | "response.reasoning_summary_text.delta":
                draft.think(text(event, "delta"))
            case "response.refusal.delta":
                draft.write(text(event, "delta"))
                draft.finish_reason = "refusal"
            case "response.output_item.added":
                self._note_call(part(event, "item"), draft)
            case "response.created":
                self._read_about(part(event, "response"), draft)
            case _ if kind in _ENDS:
                self._read_end(part(event, "response"), draft)
            case _:
                pass

    def read_whole(self, document: Mapping[str, Any], draft: Draft) -> None:
        """Read an answer that came whole."""
        for item in items(document, "output"):
            self._note_call(item, draft)
            for piece in (*items(item, "summary"), *items(item, "content")):
                match piece.get("type"):
                    case "output_text":
                        draft.write(text(piece, "text"))
                    case "summary_text" | "reasoning_text":
                        draft.think(text(piece, "text"))
                    case "refusal":
                        draft.write(text(piece, "refusal"))
                        draft.finish_reason = "refusal"
                    case _:
                        pass
        if document.get("object") == "response":
            self._read_end(document, draft)

    def _content(self, question: Question) -> list[dict[str, Any]]:
        content: list[dict[str, Any]] = []
        for picture in question.pictures:
            if picture.caption:
                content.append({"type": "input_text", "text": picture.caption})
            content.append({"type": "input_image", "image_url": data_url_of(picture)})
        words = structure_words(question.options.output, StructureStyle.OPENAI_RESPONSES)
        asked = question.prompt.text
        content.append({"type": "input_text", "text": f"{asked}\n\n{words}" if words else asked})
        return content

    def _note_call(self, item: Mapping[str, Any], draft: Draft) -> None:
        if item.get("type") == "function_call":
            draft.finish_reason = "function_call"

    def _read_end(self, response: Mapping[str, Any], draft: Draft) -> None:
        self._read_about(response, draft)
        usage = part(response, "usage")
        draft.prompt_tokens = number(usage, "input_tokens")
        draft.new_tokens = number(usage, "output_tokens")
        draft.cached_tokens = number(part(usage, "input_tokens_details"), "cached_tokens")
        draft.reasoning_tokens = number(part(usage, "output_tokens_details"), "reasoning_tokens")
        reason = text(part(response, "incomplete_details"), "reason", is_name=True)
        status = text(response, "status", is_name=True)
        draft.finish_reason = draft.finish_reason or reason or status
        draft.is_whole = True

    def _read_about(self, response: Mapping[str, Any], draft: Draft) -> None:
        draft.model = text(response, "model", is_name=True)
        draft.response_id = text(response, "id", is_name=True)
