"""OpenAI's chat completions, as it and nearly every server of models speak them."""

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

__all__ = ["ChatCodec"]

_LENGTHS = ("max_tokens", "max_completion_tokens")


@attrs.frozen(kw_only=True)
class ChatCodec:
    """
    Writes and reads chat completions.

    Attributes:
        length_field: What the server calls the longest answer, at first.
        seed_field: What it calls the seed.
        takes_top_k: Whether it takes ``top_k``.
        takes_repetition_penalty: Whether it takes ``repetition_penalty``.
        takes_template: Whether it hands ``chat_template_kwargs`` to the template of the model.
        most_stops: How many stop texts it takes; with more, none are sent, and the answer is cut
            here.
        structure: How it is asked for JSON.
        path: Where requests go.
        done_here: The field of stop texts.
    """

    length_field: str = "max_tokens"
    seed_field: str | None = "seed"
    takes_top_k: bool = True
    takes_repetition_penalty: bool = True
    takes_template: bool = True
    most_stops: int = 4
    structure: StructureStyle = StructureStyle.OPENAI_CHAT
    path: str = "/chat/completions"
    done_here: str = "stop"

    def check(self, options: GenerationOptions, effort: str) -> None:
        """Refuse options that the server has no field for."""
        del effort
        for field, is_asked, is_taken in (
            ("top_k", options.top_k is not None, self.takes_top_k),
            (
                "repetition_penalty",
                options.repetition_penalty != 1.0,
                self.takes_repetition_penalty,
            ),
            ("seed", options.seed is not None, self.seed_field is not None),
            ("thinking", options.thinking is not None, self.takes_template),
        ):
            if is_asked and not is_taken:
                raise ContractError(field, "got one, expected none: the server takes none")

    def headers(self, key: Secret | None) -> list[tuple[str, str]]:
        """Say who asks."""
        return lines_of(key)

    def request(self, question: Question) -> dict[str, Any]:
        """Write a request."""
        options, out = question.options, question.left_out
        length = self.length_field
        if length in out:
            length = _LENGTHS[1 - _LENGTHS.index(length)]
        fields: dict[str, Any] = {
            "model": question.model,
            "messages": self._messages(question),
            length: options.max_new_tokens,
            "temperature": options.temperature,
            "stream": question.streams,
        }
        if question.streams:
            fields["stream_options"] = {"include_usage": True}
        if options.top_p != 1.0:
            fields["top_p"] = options.top_p
        if options.top_k is not None:
            fields["top_k"] = options.top_k
        if options.repetition_penalty != 1.0:
            fields["repetition_penalty"] = options.repetition_penalty
        if options.seed is not None and self.seed_field is not None:
            fields[self.seed_field] = options.seed
        if 0 < len(options.stop) <= self.most_stops:
            fields["stop"] = list(options.stop)
        if options.thinking is not None:
            fields["chat_template_kwargs"] = {"enable_thinking": options.thinking}
        if question.effort:
            fields["reasoning_effort"] = question.effort
        fields |= structure_fields(options.output, self.structure)
        kept = {name: value for name, value in fields.items() if name not in out}
        return kept | dict(question.more)

    def replaceable(self, question: Question) -> tuple[str, ...]:
        """Name what the caller did not ask for, and what has another name or is done here."""
        fields = ["stream_options", self.done_here]
        if self.length_field in _LENGTHS and self.length_field not in question.left_out:
            fields.append(self.length_field)
        if question.options.temperature == 0:
            fields.append("temperature")
        return tuple(fields)

    def read_event(self, event: Mapping[str, Any], draft: Draft) -> None:
        """Read one event."""
        self._read_about(event, draft)
        for choice in items(event, "choices"):
            if choice.get("index"):
                continue  # of another answer, where several were asked for
            self._read_message(part(choice, "delta"), draft)
            reason = text(choice, "finish_reason", is_name=True)
            draft.finish_reason = reason or draft.finish_reason

    def read_whole(self, document: Mapping[str, Any], draft: Draft) -> None:
        """Read an answer that came whole."""
        self._read_about(document, draft)
        for choice in items(document, "choices")[:1]:
            self._read_message(part(choice, "message"), draft)
            draft.finish_reason = text(choice, "finish_reason", is_name=True)
            draft.is_whole = isinstance(choice.get("message"), dict)

    def _messages(self, question: Question) -> list[dict[str, Any]]:
        prompt = question.prompt
        words = structure_words(question.options.output, self.structure)
        asked = f"{prompt.text}\n\n{words}" if words else prompt.text
        content: Any = asked
        if question.pictures:
            content = []
            for picture in question.pictures:
                if picture.caption:
                    content.append({"type": "text", "text": picture.caption})
                content.append({"type": "image_url", "image_url": {"url": data_url_of(picture)}})
            content.append({"type": "text", "text": asked})
        messages = [{"role": "user", "content": content}]
        if prompt.system:
            messages.insert(0, {"role": "system", "content": prompt.system})
        return messages

    def _read_message(self, message: Mapping[str, Any], draft: Draft) -> None:
        # Some send the thoughts under both names while they change from one to the other.
        draft.think(text(message, "reasoning_content") or text(message, "reasoning"))
        draft.write(text(message, "content"))
        for piece in items(message, "content"):  # Mistral sends parts
            draft.write(text(piece, "text"))
            for thought in items(piece, "thinking"):
                draft.think(text(thought, "text"))
        if text(message, "refusal"):
            draft.write(text(message, "refusal"))
            draft.finish_reason = "refusal"

    def _read_about(self, document: Mapping[str, Any], draft: Draft) -> None:
        draft.model = text(document, "model", is_name=True) or draft.model
        draft.response_id = text(document, "id", is_name=True) or draft.response_id
        usage = part(document, "usage") or part(part(document, "x_groq"), "usage")
        if usage:
            draft.prompt_tokens = number(usage, "prompt_tokens")
            draft.new_tokens = number(usage, "completion_tokens")
            draft.cached_tokens = number(part(usage, "prompt_tokens_details"), "cached_tokens")
            details = part(usage, "completion_tokens_details")
            draft.reasoning_tokens = number(details, "reasoning_tokens")
