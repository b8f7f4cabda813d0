"""What the process that began a job tells its workers in others, and what they tell it."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from vlmcore.errors import VlmcoreError
from vlmcore.jobs.items import Item
from vlmcore.jobs.journal import Answer
from vlmcore.jobs.prompts import CaptionPrompt
from vlmcore.jobs.reading import Seen
from vlmcore.limits import JobLimits

__all__ = ["Asking", "Order", "Told"]


@attrs.frozen(kw_only=True)
class Asking:
    """
    What is asked about each image, and how.

    Attributes:
        prompts: The questions.
        marks: What tells each of them from others.
        batch_size: Questions at once, of a model in the worker's process.
        in_flight: Calls at once, of a model behind a server; all workers together make so many.
        patience_s: How long to wait for a server that is away, in seconds.
        limits: How much is held.
    """

    prompts: tuple[CaptionPrompt, ...]
    marks: tuple[str, ...]
    batch_size: int
    in_flight: int
    patience_s: float
    limits: JobLimits


@attrs.frozen(kw_only=True)
class Order:
    """
    What a worker is told to do about an image.

    Attributes:
        item: The image.
        done: The digest of bytes of which all is known: they are not decoded.
        answered: The marks of questions that are answered already, for each digest of bytes that
            the image has had.
    """

    item: Item
    done: bytes | None = None
    answered: Mapping[bytes, frozenset[str]] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Told:
    """
    What a worker says about an image.

    Attributes:
        seen: What it saw of it, without the pixels.
        answers: What its model said.
        error: Why the model says no more, about this image and others.
    """

    seen: Seen
    answers: tuple[Answer, ...] = ()
    error: VlmcoreError | None = None
