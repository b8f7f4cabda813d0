"""One request of a run, and who can be asked it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import attrs

from vlmcore.lab.events import Phase, Sample
from vlmcore.vlm.generation import GenerationOptions
from vlmcore.vlm.prompt import Prompt

__all__ = ["Asker", "Request"]


@attrs.frozen(kw_only=True)
class Request:
    """
    One request of a run.

    Attributes:
        case: The name of the case.
        target: The name of what is asked.
        phase: What its sample is for.
        block: The number of its block.
        leg: The number of its leg.
        prompt: Makes what is asked: reads and resizes the image.
        options: How it is to be answered.
        deadline_s: When it is given up.
        clock_ns: Gives the time since the run began, in nanoseconds.
    """

    case: str
    target: str
    phase: Phase
    block: int
    leg: int
    prompt: Callable[[], Prompt]
    options: GenerationOptions
    deadline_s: float
    clock_ns: Callable[[], int]


class Asker(Protocol):
    """Asks a target, and measures what comes."""

    def ask(self, request: Request) -> Sample:
        """Ask once. A request that fails gives a sample that says so."""
        ...

    def close(self) -> None:
        """Give back what it holds."""
        ...
