"""Models that cannot be used."""

from __future__ import annotations

from vlmcore.errors._base import VlmcoreError

__all__ = [
    "DetectionCancelledError",
    "DetectionError",
    "GenerationError",
    "ModelAccessError",
    "ModelError",
    "ModelMemoryError",
    "StructureError",
    "UnsupportedModelError",
]


class ModelError(VlmcoreError):
    """
    A model cannot be used.

    Attributes:
        model: The model as the caller named it.
        problem: What is wrong and what to do.
    """

    def __init__(self, model: str, problem: str) -> None:
        super().__init__(model, problem)
        self.model = model
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.model}: {self.problem}"


class ModelAccessError(ModelError):
    """A model was not found, is gated, or its hub is out of reach."""


class UnsupportedModelError(ModelError):
    """A model was found, but is not of a kind that can be run here."""


class ModelMemoryError(ModelError, MemoryError):
    """
    A model does not fit into the memory that is free.

    Attributes:
        needed_bytes: What it needs, estimated from its weights; ``None`` where unknown.
        available_bytes: What was free when it was asked for; ``None`` where unknown.
    """

    def __init__(
        self,
        model: str,
        problem: str,
        needed_bytes: int | None = None,
        available_bytes: int | None = None,
    ) -> None:
        super().__init__(model, problem)
        self.args = (model, problem, needed_bytes, available_bytes)
        self.needed_bytes = needed_bytes
        self.available_bytes = available_bytes


class GenerationError(ModelError):
    """A model failed while it was generating."""


class DetectionError(ModelError):
    """A model failed while it was looking for what labels name."""


class DetectionCancelledError(DetectionError):
    """A search was stopped by its caller, and nothing is known of what was not searched."""


class StructureError(GenerationError):
    """
    A model's answer is not what was asked for: it is cut, is no JSON, or does not fit its schema.

    Attributes:
        text: What the model wrote.
        stop_reason: Why it ended, a value of `vlmcore.vlm.generation.StopReason`.
        faults: The path of each fault, as ``"$.boxes[3]"``, and what is wrong there.
    """

    def __init__(
        self,
        model: str,
        problem: str,
        text: str = "",
        stop_reason: str = "end",
        faults: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(model, problem)
        self.args = (model, problem, text, stop_reason, faults)
        self.text = text
        self.stop_reason = stop_reason
        self.faults = faults


class IncompleteAnswersError(ModelError):
    """
    Some of many prompts were not answered; what was answered is kept.

    Attributes:
        answers: For each prompt, in their order: its answer, the error that it ended with, or
            ``None`` if it was not asked any more.
    """

    def __init__(self, model: str, problem: str, answers: tuple[object, ...]) -> None:
        super().__init__(model, problem)
        self.args = (model, problem, answers)
        self.answers = answers
