"""
Messages of GR00T that are like those before them: most of a robot's requests and answers.

The bytes of a request differ in frames, state and instruction; those of an answer in its numbers.
What is known is compared to the last byte or written again as it is. All else is read and written
as a whole, which is where each check is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from vlmcore.contracts._chunk_copies import chunk_like
from vlmcore.contracts.actions import ActionChunk, Stream
from vlmcore.errors import VlmcoreError
from vlmcore.limits import WireLimits
from vlmcore_robotics.wire._blobs import Parts
from vlmcore_robotics.wire._frame_forms import SOME_TEXT, FrameForm
from vlmcore_robotics.wire._frame_writer import written_text
from vlmcore_robotics.wire.ndarrays import pixels_of

__all__ = ["KnownForms"]

_MOST_FORMS = 8  # of requests: cameras of a robot seldom change their size
_Request = Mapping[str, Mapping[str, Any]]


class KnownForms:
    """What a codec wrote and read before, but for what changes from call to call."""

    def __init__(self) -> None:
        self._requests: dict[tuple[tuple[int, ...], ...], FrameForm] = {}
        self._answers: list[_AnswerForm | None] = []  # of the first one, once there was one

    def write(
        self, request: _Request, whole: Callable[[_Request], Parts], limits: WireLimits
    ) -> Parts:
        """
        Write a request of which only the arrays and the instruction may differ.

        Args:
            request: The request, laid out as modalities.
            whole: Writes one as a whole, and checks it.
            limits: How large it may be.
        """
        arrays = [*request["video"].values(), *request["state"].values()]
        shapes = tuple(array.shape for array in arrays)
        form = self._requests.get(shapes)
        if form is None:
            parts = whole(request)
            if len(self._requests) < _MOST_FORMS:
                some = {key: [[SOME_TEXT]] for key in request["language"]}
                self._requests[shapes] = FrameForm(whole({**request, "language": some}))
            return parts
        texts = [written_text(texts[0][0]) for texts in request["language"].values()]
        text_bytes = sum(map(len, texts))
        if (
            form.size + text_bytes > limits.max_request_bytes
            or form.around_bytes + text_bytes > limits.max_text_bytes
        ):
            return whole(request)
        return form.filled([*(pixels_of(np.ascontiguousarray(each)) for each in arrays), *texts])

    def read(self, frame: bytes, observed_at_s: float) -> ActionChunk | None:
        """Read an answer that differs in its numbers from one that was read, or return ``None``."""
        form = self._answers[0] if self._answers else None
        return None if form is None else form.read(frame, observed_at_s)

    def learn(
        self,
        frame: bytes,
        actions: Mapping[str, Any],
        chunk: ActionChunk,
        whole: Callable[[], Parts],
    ) -> None:
        """
        Learn from the first answer, if it is arrays of floats, and bytes that are always there.

        Args:
            frame: The answer.
            actions: What was read in it, by the names of the streams.
            chunk: What it means.
            whole: Writes the answer again.
        """
        if not self._answers:
            self._answers.append(_AnswerForm.of(frame, actions, chunk, whole))


@attrs.frozen(kw_only=True, eq=False)
class _AnswerForm:
    """
    Answers like one that was read, but for their numbers.

    Attributes:
        form: What they have in common.
        dtype: What their numbers are.
        streams: What each gap in it is.
        chunk: The answer that was read.
    """

    form: FrameForm
    dtype: np.dtype[Any]
    streams: tuple[Stream, ...]
    chunk: ActionChunk

    @classmethod
    def of(
        cls,
        frame: bytes,
        actions: Mapping[str, Any],
        chunk: ActionChunk,
        whole: Callable[[], Parts],
    ) -> _AnswerForm | None:
        """Learn from an answer; ``None`` if there is more to it."""
        by_name = {stream.name: stream for stream in chunk.streams}
        dtypes = {getattr(array, "dtype", None) for array in actions.values()}
        dtype = dtypes.pop()
        if dtypes or dtype is None or dtype.kind != "f" or actions.keys() != by_name.keys():
            return None
        try:
            parts = whole()
        except VlmcoreError:  # it is longer in our words
            return None
        streams = tuple(by_name[name] for name in actions)
        form = FrameForm(parts)
        starts = form.gaps_of(frame)
        if starts is None or len(starts) != len(streams) or b"".join(parts) != frame:
            return None
        return cls(form=form, dtype=dtype.newbyteorder("<"), streams=streams, chunk=chunk)

    def read(self, frame: bytes, observed_at_s: float) -> ActionChunk | None:
        """Read an answer; ``None`` if it is another one in more than its numbers."""
        starts = self.form.gaps_of(frame)
        if starts is None:
            return None
        like = self.chunk
        values = np.empty(like.values.shape)
        with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN
            for stream, start in zip(self.streams, starts, strict=True):
                part = values[:, stream.start : stream.end]
                numbers: npt.NDArray[Any] = np.frombuffer(frame, self.dtype, part.size, start)
                part[:] = numbers.reshape(part.shape)
        return chunk_like(like, values, observed_at_s=observed_at_s)
