"""What a protocol of servers is: requests are written, and what comes is read into a draft."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Protocol

import attrs

from vlmcore.secrets import Secret
from vlmcore.vlm.generation import GenerationOptions
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.remote._draft import Draft
from vlmcore.vlm.remote.pictures import Picture

__all__ = ["Codec", "Question", "base64_of", "data_url_of", "lines_of"]


@attrs.frozen(kw_only=True, repr=False)
class Question:
    """
    One request, before it is written.

    Attributes:
        model: As the server calls it.
        prompt: What is asked.
        options: How it is to be answered.
        pictures: What there is to see.
        streams: Whether the answer is to come piece by piece.
        effort: How much the model is to think; empty leaves it to the server.
        more: Fields of the request that the caller gave.
        left_out: Fields that the server refused before.
    """

    model: str
    prompt: Prompt
    options: GenerationOptions
    pictures: tuple[Picture, ...]
    streams: bool
    effort: str
    more: Mapping[str, Any]
    left_out: frozenset[str]


class Codec(Protocol):
    """One protocol. It knows no socket and no clock."""

    @property
    def path(self) -> str:
        """Where requests go, behind the base path."""
        ...

    @property
    def done_here(self) -> str:
        """The field of stop texts, which are cut off here too; empty if there is none."""
        ...

    def check(self, options: GenerationOptions, effort: str) -> None:
        """
        Refuse what the protocol cannot ask for.

        Raises:
            ContractError: If *options* or *effort* hold it.
        """
        ...

    def headers(self, key: Secret | None) -> list[tuple[str, str]]:
        """Say who asks."""
        ...

    def request(self, question: Question) -> dict[str, Any]:
        """Write a request, as values of JSON."""
        ...

    def replaceable(self, question: Question) -> tuple[str, ...]:
        """Name the fields that may be left out or renamed where the server refuses them."""
        ...

    def read_event(self, event: Mapping[str, Any], draft: Draft) -> None:
        """Read one event of a stream."""
        ...

    def read_whole(self, document: Mapping[str, Any], draft: Draft) -> None:
        """Read an answer that came whole."""
        ...


def base64_of(picture: Picture) -> str:
    """Write a picture as text."""
    return base64.b64encode(picture.encoded).decode("ascii")


def data_url_of(picture: Picture) -> str:
    """Write a picture as a data URL."""
    return f"data:{picture.media_type};base64,{base64_of(picture)}"


def lines_of(key: Secret | None) -> list[tuple[str, str]]:
    """Say who asks, as most servers read it."""
    return [] if key is None else [("authorization", f"Bearer {key.reveal()}")]
