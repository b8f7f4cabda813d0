"""Many questions about the same pictures."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

import attrs

from vlmcore.errors import ContractError, ModelError
from vlmcore.media.images import load_image
from vlmcore.vlm.generation import CancelToken, Generation, GenerationOptions
from vlmcore.vlm.predictor import GenerationStream, Predictor
from vlmcore.vlm.prompt import Prompt

__all__ = ["Session"]

_GREEDY = GenerationOptions()
_NO_QUESTION = "-"  # each question takes its place


class Session:
    """
    Many questions about the same pictures or the same video.

    Each question is asked for itself: no answer depends on what was asked before. A model in this
    process looks at the pictures once, and `Generation.reused` says so; a server is shown them each
    time. Threads may share a session as they share its predictor.

    Args:
        predictor: Who answers. It stays open when the session is closed.
        images: What `vlmcore.load_image` takes, each: a path, bytes, a data URL, a PIL image, an
            array, a tensor.
        system: The system text; empty leaves it out.
        video: Frames of shape ``[T, H, W, 3]``, uint8 RGB, oldest first.
        video_rate_hz: Rate of the frames, in frames a second.
        video_timestamps_s: Time of each frame in the source video, in seconds, ascending.

    Raises:
        MediaError: If a source cannot be read as an image.
        ContractError: If an argument is not as described.
        LimitExceededError: If there is more than `vlmcore.limits.PromptLimits` allows.

    Example:
        >>> import numpy as np
        >>> from vlmcore.testing import EchoPredictor
        >>> with Session(EchoPredictor(), images=[np.zeros((48, 64))]) as session:
        ...     answers = [session.ask(text) for text in ("Who is there?", "Where?")]
        >>> len(answers)
        2
    """

    def __init__(
        self,
        predictor: Predictor,
        *,
        images: Sequence[Any] = (),
        system: str = "",
        video: Any = None,
        video_rate_hz: float = 1.0,
        video_timestamps_s: Sequence[float] | None = None,
    ) -> None:
        if not isinstance(images, (list, tuple)):
            kind = type(images).__name__
            raise ContractError("images", f"got {kind}, expected a list of images")
        self._predictor = predictor
        self._about: Prompt | None = Prompt(
            text=_NO_QUESTION,
            system=system,
            images=tuple(load_image(image) for image in images),
            video=video,
            video_rate_hz=video_rate_hz,
            video_timestamps_s=None if video_timestamps_s is None else tuple(video_timestamps_s),
        )

    def ask(
        self,
        question: str,
        options: GenerationOptions = _GREEDY,
        /,
        *,
        cancel: CancelToken | None = None,
    ) -> Generation:
        """
        Answer *question*.

        Raises:
            ModelError: If the session or its predictor is closed.
            VlmcoreError: The errors of the predictor's ``generate``.
        """
        return self._predictor.generate(self._prompt(question), options, cancel=cancel)

    def stream(
        self,
        question: str,
        options: GenerationOptions = _GREEDY,
        /,
        *,
        cancel: CancelToken | None = None,
    ) -> GenerationStream:
        """
        Answer *question* piece by piece.

        Raises:
            ModelError: If the session or its predictor is closed.
        """
        return self._predictor.stream(self._prompt(question), options, cancel=cancel)

    def close(self) -> None:
        """Let go of the pictures; further questions are refused. Closing twice is no error."""
        self._about = None

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _prompt(self, question: str) -> Prompt:
        about = self._about
        if about is None:
            raise ModelError(self._predictor.info.model, "this session is closed: open another")
        return attrs.evolve(about, text=question)
