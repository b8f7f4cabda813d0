"""Action chunks: what a policy proposes, before anybody has looked whether it is safe."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
import numpy.typing as npt

from vlmcore._arguments import shown
from vlmcore._arrays import (
    Float64Array,
    UInt8Array,
    as_tuple,
    plain_float,
    readonly_float64,
    require_finite,
    require_name,
    require_names,
)
from vlmcore._copying import as_array, by_value, through_constructor
from vlmcore._json_values import frozen_object
from vlmcore.charts.chart import Chart, HasMarks
from vlmcore.charts.drawing import draw, figure
from vlmcore.contracts._charts import chart_of
from vlmcore.contracts._html import chunk_html
from vlmcore.contracts.embodiment import ActionSpace, Embodiment
from vlmcore.errors import ContractError
from vlmcore.limits import ContractLimits

if TYPE_CHECKING:
    import matplotlib.figure

__all__ = ["ActionChunk", "ActionStep", "Stream"]

_LIMITS = ContractLimits()


@attrs.frozen(kw_only=True)
class Stream:
    """
    A part of an action that a policy sends under a name of its own, as an arm or a gripper.

    Attributes:
        name: As the policy calls it.
        start: Its first dimension.
        end: The dimension after its last, ``start < end``.

    Raises:
        ContractError: If a field is not as described.
    """

    name: str
    start: int
    end: int

    def __attrs_post_init__(self) -> None:
        require_name("name", self.name, max_characters=_LIMITS.max_name_characters)
        most = _LIMITS.max_actions
        for field, value in (("start", self.start), ("end", self.end)):
            is_whole = isinstance(value, int) and not isinstance(value, bool)
            if not is_whole or not 0 <= value <= most:
                raise ContractError(field, f"got {shown(value)}, expected 0 to {most}")
        if not self.start < self.end:
            raise ContractError("end", f"got {self.end}, expected more than start, {self.start}")


def _values(value: Any) -> Float64Array:
    return readonly_float64(value, field="values", axes="[T, D]")


def _metadata(value: Any) -> Mapping[str, Any]:
    return frozen_object(value, field="metadata")


@attrs.frozen(kw_only=True)
class ActionChunk:
    """
    The next actions, as a policy proposes them; nothing here says that they are safe.

    The values are a copy that cannot be written to, but by what does not ask, as torch. They may
    hold NaN and infinity: it is the safety gate that finds them. Chunks are equal if they hold the
    same in every field, where NaN is the same as NaN.

    Attributes:
        values: One action a row, shape ``[T, D]``, float64; 1 to 4,096 steps of 1 to 2,048
            dimensions.
        names: What each dimension is, ``D`` unique names.
        source: Which policy proposes it.
        observed_at_s: Reading of the caller's monotonic clock at the newest frame that the policy
            was shown.
        streams: The named parts, side by side from the first dimension to the last; empty if the
            policy does not name any.
        metadata: What the policy said beside it, as JSON values; read-only.

    Raises:
        ContractError: If a field is not as described.

    Example:
        >>> import numpy as np
        >>> pixels_of_nobody = np.zeros((2, 1))
        >>> chunk = ActionChunk(
        ...     values=pixels_of_nobody, names=("x",), source="doc", observed_at_s=0
        ... )
        >>> chunk.values is pixels_of_nobody, chunk.horizon
        (False, 2)
    """

    values: Float64Array = attrs.field(converter=_values, eq=by_value)
    names: tuple[str, ...] = attrs.field(converter=as_tuple)
    source: str
    observed_at_s: float = attrs.field(converter=plain_float)
    streams: tuple[Stream, ...] = attrs.field(default=(), converter=as_tuple)
    metadata: Mapping[str, Any] = attrs.field(factory=dict, converter=_metadata, hash=False)

    def __attrs_post_init__(self) -> None:
        steps, width = self.values.shape
        if not 1 <= steps <= _LIMITS.max_horizon:
            raise ContractError(
                "values", f"got {steps} steps, expected 1 to {_LIMITS.max_horizon:,}"
            )
        if not 1 <= width <= _LIMITS.max_actions:
            raise ContractError(
                "values", f"got {width} dimensions, expected 1 to {_LIMITS.max_actions:,}"
            )
        longest = _LIMITS.max_name_characters
        require_names("names", self.names, max_count=_LIMITS.max_actions, max_characters=longest)
        if len(self.names) != width:
            raise ContractError(
                "names", f"got {len(self.names)} names, expected one a dimension, {width}"
            )
        require_name("source", self.source, max_characters=longest)
        require_finite(observed_at_s=self.observed_at_s)
        if not isinstance(self.streams, tuple) or self.streams:
            self._check_streams(width)

    __reduce__ = through_constructor

    def __array__(
        self,
        dtype: Any = None,
        copy: bool | None = None,  # noqa: FBT001 - NumPy calls it so
    ) -> npt.NDArray[Any]:
        """Give the values to NumPy: ``np.asarray(chunk)`` is they, and cannot be written to."""
        return as_array(self.values, dtype, copy=copy)

    @property
    def horizon(self) -> int:
        """How many steps it has."""
        return int(self.values.shape[0])

    @property
    def is_finite(self) -> bool:
        """Whether no value is NaN or infinite."""
        return bool(np.isfinite(self.values).all())

    def stream(self, name: str) -> Float64Array:
        """
        Take the part *name*, shape ``[T, end - start]``.

        Raises:
            ContractError: If there is no stream of this name.
        """
        for stream in self.streams:
            if stream.name == name:
                return self.values[:, stream.start : stream.end]
        names = ", ".join(stream.name for stream in self.streams) or "none, there are no streams"
        raise ContractError("name", f"got {shown(name)}, expected one of: {names}")

    def step(self, index: int) -> ActionStep:
        """
        Take one step, ``0 <= index < T``.

        Raises:
            ContractError: If there is no such step, or if it is not finite.
        """
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < self.horizon:
            raise ContractError(
                "index", f"got {shown(index)}, expected a step from 0 to {self.horizon - 1}"
            )
        action = dict(zip(self.names, self.values[index].tolist(), strict=True))
        return ActionStep(source=self.source, step_index=index, action=action)

    def plot(
        self,
        *,
        space: ActionSpace | Embodiment | None = None,
        report: HasMarks | None = None,
        last_command: Any = None,
    ) -> matplotlib.figure.Figure:
        """
        Draw the chunk as a figure of matplotlib, which notebooks show.

        Args:
            space: Draws the bounds, and gives units and time; its names are those of the chunk. A
                robot stands for its actions.
            report: Marks what breaks a limit: a `vlmcore.safety.report.SafetyReport` on this chunk,
                or anything else with ``marks()``. Steps that it did not look at are shaded.
            last_command: What was sent before the first step, shape ``[D]`` or numbers by name.

        Returns:
            A figure that pyplot does not know of, so that nothing has to be closed.

        Raises:
            ContractError: If these do not fit the chunk.
            MissingDependencyError: If matplotlib is not installed.
        """
        return figure(self._chart(space, report, last_command))

    def preview(
        self,
        *,
        space: ActionSpace | Embodiment | None = None,
        report: HasMarks | None = None,
        last_command: Any = None,
        width_px: int = 960,
        height_px: int | None = None,
    ) -> UInt8Array:
        """
        Draw the chunk as a picture, with Pillow.

        Args:
            space: As in `plot`.
            report: As in `plot`.
            last_command: As in `plot`.
            width_px: Width of the picture, 200 to 4,096.
            height_px: Height of the picture, 160 to 4,096; ``None`` for as much as is needed.

        Returns:
            RGB, shape ``[height_px, width_px, 3]``; `vlmcore.media.encoding.encode_png` writes it.

        Raises:
            ContractError: If these do not fit the chunk, or a size is too small.
            LimitExceededError: If a size is too large.
            MissingDependencyError: If Pillow is not installed.

        Example:
            >>> chunk = ActionChunk(
            ...     values=[[0.0], [0.2]], names=("x",), source="doc", observed_at_s=0
            ... )
            >>> chunk.preview(width_px=320, height_px=200).shape
            (200, 320, 3)
        """
        chart = self._chart(space, report, last_command)
        return draw(chart, width_px=width_px, height_px=height_px)

    def _repr_html_(self) -> str:
        return chunk_html(self, self._chart(None, None, None))

    def _chart(self, space: Any, report: Any, last_command: Any) -> Chart:
        return chart_of(
            self.values,
            self.names,
            title=f"{self.source}: {self.horizon} x {len(self.names)}",
            space=space,
            report=report,
            last_command=last_command,
        )

    def _check_streams(self, width: int) -> None:
        streams = self.streams
        if not isinstance(streams, tuple) or not all(isinstance(s, Stream) for s in streams):
            raise ContractError("streams", f"got {shown(streams)}, expected a tuple of Stream")
        require_names(
            "streams",
            tuple(stream.name for stream in streams),
            max_count=_LIMITS.max_actions,
            max_characters=_LIMITS.max_name_characters,
        )
        end = 0
        for i, stream in enumerate(streams):
            if stream.start != end:
                raise ContractError(
                    f"streams[{i}]", f"got a start at {stream.start}, expected {end}: side by side"
                )
            end = stream.end
        if end != width:
            raise ContractError("streams", f"got an end at {end}, expected all dimensions, {width}")


def _action(value: Any) -> Mapping[str, float]:
    if not isinstance(value, Mapping):
        raise ContractError("action", f"got {type(value).__name__}, expected names and numbers")
    return frozen_object({name: plain_float(each) for name, each in value.items()}, field="action")


@attrs.frozen(kw_only=True)
class ActionStep:
    """
    One step of a chunk, its values under their names.

    Attributes:
        source: Which policy proposed it.
        step_index: Which step of its chunk it is, from 0.
        action: Finite numbers by the names of their dimensions, read-only, in the order of the
            chunk.

    Raises:
        ContractError: If a field is not as described.
    """

    source: str
    step_index: int
    action: Mapping[str, float] = attrs.field(converter=_action, hash=False)

    def __attrs_post_init__(self) -> None:
        longest = _LIMITS.max_name_characters
        require_name("source", self.source, max_characters=longest)
        index = self.step_index
        if (
            isinstance(index, bool)
            or not isinstance(index, int)
            or not 0 <= index < _LIMITS.max_horizon
        ):
            raise ContractError(
                "step_index", f"got {shown(index)}, expected 0 to {_LIMITS.max_horizon - 1}"
            )
        names = tuple(self.action)
        require_names("action", names, max_count=_LIMITS.max_actions, max_characters=longest)
        for name, value in self.action.items():
            if not isinstance(value, float) or not math.isfinite(value):
                raise ContractError(
                    f"action[{name!r}]", f"got {shown(value)}, expected a finite number"
                )

    __reduce__ = through_constructor
