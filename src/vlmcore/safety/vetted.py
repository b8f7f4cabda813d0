"""Actions that a gate has vetted: the only thing that may be handed to a controller."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

import attrs
import numpy as np
import numpy.typing as npt

from vlmcore._arrays import BoolArray, Float64Array, UInt8Array, immutable
from vlmcore._copying import as_array
from vlmcore.charts.chart import Chart
from vlmcore.charts.drawing import draw, figure
from vlmcore.contracts._charts import chart_of
from vlmcore.contracts.actions import ActionChunk, Stream
from vlmcore.contracts.embodiment import LimitsSource
from vlmcore.errors import UnsafeActionError
from vlmcore.safety._float32 import round_inward, round_sums
from vlmcore.safety._html import vetted_html
from vlmcore.safety._rules import Rules
from vlmcore.safety.audit import find
from vlmcore.safety.findings import Findings, ViolationKind
from vlmcore.safety.references import read_position
from vlmcore.safety.report import RefusalReason, SafetyReport

if TYPE_CHECKING:
    import matplotlib.figure

__all__ = ["VettedChunk"]

_ONLY = "only SafetyGate.vet() makes a VettedChunk"


@attrs.frozen(eq=False)
class _Marks:
    """The marks of the steps that left."""

    marked: BoolArray

    def marks(self) -> BoolArray:
        return self.marked


class VettedChunk:
    """
    Actions within every limit from the last command on; only `SafetyGate.vet` makes them.

    There is no constructor, no copy with other values, no subclass and no way through pickle or a
    file: what arrives from elsewhere is an `ActionChunk` and is vetted again. Whatever is computed
    from the values is no longer vetted either.

    Attributes:
        values: Shape ``[T, D]``, float64, in memory that cannot be written to, but by what does not
            ask whether it may, as torch: hand it a copy.
        names: What each dimension is.
        source: Which policy proposed the actions.
        observed_at_s: Reading of the caller's monotonic clock at the newest frame that the policy
            was shown.
        streams: The named parts.
        proposed: The chunk as it came to the gate.
        report: What was found in it.
        limits_source: Where the limits come from; ``None`` if the gate was given a space, and
            nobody said.
        space_digest: SHA-256 of the action space that was vetted against.
        last_command: What the first step follows, shape ``[D]``, 0 for offsets from where the chunk
            begins; ``None`` if it was not needed.
        position: Where the things were that move, by name; ``None`` if that was not needed.
    """

    __slots__ = (
        "_bytes",
        "_rules",
        "last_command",
        "limits_source",
        "names",
        "observed_at_s",
        "position",
        "proposed",
        "report",
        "source",
        "space_digest",
        "streams",
        "values",
    )

    values: Float64Array
    names: tuple[str, ...]
    source: str
    observed_at_s: float
    streams: tuple[Stream, ...]
    proposed: ActionChunk
    report: SafetyReport
    limits_source: LimitsSource | None
    space_digest: str
    last_command: Float64Array | None
    position: Mapping[str, float] | None
    _bytes: bytes
    _rules: Rules

    def __new__(cls, *_: object, **__: object) -> VettedChunk:
        """Refuse."""
        raise TypeError(_ONLY)

    def __init_subclass__(cls) -> NoReturn:
        """Refuse: a subclass could make its own."""
        raise TypeError(_ONLY)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{name}: a VettedChunk cannot be changed")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{name}: a VettedChunk cannot be changed")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse: what comes out of a file was not vetted here."""
        raise TypeError(f"{_ONLY}: pickle chunk.as_chunk(), and vet it again where it arrives")

    def __setstate__(self, state: object) -> NoReturn:
        """Refuse what a pickle was made to hold."""
        raise TypeError(_ONLY)

    def __replace__(self, **_: object) -> NoReturn:
        """Refuse: other values are other actions."""
        raise TypeError(f"{_ONLY}: change chunk.as_chunk(), and vet it again")

    def __copy__(self) -> VettedChunk:
        """Take itself: it cannot change."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> VettedChunk:
        """Take itself: it cannot change."""
        return self

    def __repr__(self) -> str:
        return f"<VettedChunk of {self.source!r}: {self.horizon} x {len(self.names)}>"

    def __array__(
        self,
        dtype: Any = None,
        copy: bool | None = None,  # noqa: FBT001 - NumPy calls it so
    ) -> npt.NDArray[Any]:
        """Give the values to NumPy: ``np.asarray(vetted)`` is they, and cannot be written to."""
        return as_array(self.values, dtype, copy=copy)

    @property
    def horizon(self) -> int:
        """How many steps it has."""
        return len(self.values)

    @property
    def is_intact(self) -> bool:
        """
        Whether the values are still what was vetted.

        Torch and all that takes memory by DLPack write to read-only arrays too. What they did to
        the values is seen here, by a copy that nobody else has; `hand_off` and `as_float32` refuse
        what is not intact.
        """
        values, width = self.values, len(self.names)
        is_shaped = values.dtype == np.float64 and values.shape[1:] == (width,)
        return is_shaped and values.tobytes() == self._bytes

    @property
    def digest(self) -> str:
        """SHA-256 of the values as little-endian float64, row by row."""
        return hashlib.sha256(self.values.astype("<f8").tobytes()).hexdigest()

    def as_chunk(self) -> ActionChunk:
        """Give the actions as a policy would propose them; they are not vetted any more."""
        return ActionChunk(
            values=self.values,
            names=self.names,
            source=self.source,
            observed_at_s=self.observed_at_s,
            streams=self.streams,
        )

    def plot(self) -> matplotlib.figure.Figure:
        """
        Draw the actions as a figure of matplotlib, in their bounds, over what was proposed.

        Returns:
            As `ActionChunk.plot`.

        Raises:
            MissingDependencyError: If matplotlib is not installed.
        """
        return figure(self._chart())

    def preview(self, *, width_px: int = 960, height_px: int | None = None) -> UInt8Array:
        """
        Draw the actions as a picture with Pillow, in their bounds, over what was proposed.

        Args:
            width_px: As in `ActionChunk.preview`.
            height_px: As in `ActionChunk.preview`.

        Returns:
            RGB, shape ``[height_px, width_px, 3]``.

        Raises:
            ContractError: If a size is too small.
            LimitExceededError: If a size is too large.
            MissingDependencyError: If Pillow is not installed.
        """
        return draw(self._chart(), width_px=width_px, height_px=height_px)

    def _repr_html_(self) -> str:
        return vetted_html(self, self._chart())

    def _chart(self) -> Chart:
        findings, horizon = self.report.findings, self.horizon  # there may have been more steps
        return chart_of(
            self.values,
            self.names,
            title=f"{self.source}, vetted: {self.horizon} x {len(self.names)}",
            space=self._rules.space,
            report=_Marks(self.report.marks()[:horizon]),
            last_command=self.last_command,
            proposed=None if findings is None else findings.values[:horizon],
        )

    def as_float32(self) -> npt.NDArray[np.float32]:
        """
        Give the values as float32, rounded towards the inside of the bounds.

        Half of all float64 bounds are exceeded by their own rounding to float32. Here every number
        is in bounds also when a controller compares it in float64. Rounding moves steps and
        positions a little: they keep their bounds to twice the slack of `audit`, or nothing is
        given. Where the roundings of many changes would add up to more, they are made to cancel.

        Returns:
            Shape ``[T, D]``, read-only as the values are. Values that came as float32 come back bit
            by bit.

        Raises:
            UnsafeActionError: If float32 is too coarse to write values that keep the limits of this
                space, or the values are not what was vetted any more.
        """
        rules = self._rules
        if not self.is_intact:
            raise self._refusal(RefusalReason.ALTERED, self.report.findings)
        with np.errstate(all="ignore"):  # what overflows is brought back, or found below
            rounded = round_inward(self.values, rules.low, rules.high)
            left = self._wrong_with(rounded)
            if left is not None and left.reached is not None and rules.positions is not None:
                at = rules.positions.columns[~rules.positions.is_offset]
                rounded[:, at] = round_sums(self.values[:, at], rules.low[at], rules.high[at])
                left = self._wrong_with(rounded)
        if left is not None and left.kinds - {ViolationKind.REFERENCE_OUT_OF_BOUNDS}:
            raise self._refusal(RefusalReason.FLOAT32_TOO_COARSE, left)
        return immutable(rounded)

    def _refusal(self, reason: RefusalReason, findings: Findings | None) -> UnsafeActionError:
        report = attrs.evolve(self.report, safe_for_handoff=False, reason=reason, findings=findings)
        return UnsafeActionError(report, reason.value)

    def _wrong_with(self, rounded: npt.NDArray[np.float32]) -> Findings | None:
        rules, values = self._rules, rounded.astype(np.float64)
        position = read_position(self.position, rules.space)
        return find(values, rules, self.last_command, position=position, slack=1.0)


def _issue(
    chunk: ActionChunk,
    values: Float64Array,
    *,
    report: SafetyReport,
    rules: Rules,
    last_command: Float64Array | None,
    position: Float64Array | None,
    limits_source: LimitsSource | None,
    space_digest: str,
) -> VettedChunk:
    """Make a vetted chunk of *values*; a test holds that the gate alone calls this."""
    vetted: VettedChunk = object.__new__(VettedChunk)
    names = rules.space.names
    keep = object.__setattr__
    keep(vetted, "values", immutable(values))
    keep(vetted, "_bytes", values.tobytes())
    keep(vetted, "names", names)
    keep(vetted, "source", chunk.source)
    keep(vetted, "observed_at_s", chunk.observed_at_s)
    # What was put in another order has its parts no longer side by side.
    keep(vetted, "streams", chunk.streams if chunk.names == names else ())
    keep(vetted, "proposed", chunk)
    keep(vetted, "report", report)
    keep(vetted, "limits_source", limits_source)
    keep(vetted, "space_digest", space_digest)
    keep(vetted, "last_command", last_command)
    at = (
        None
        if position is None
        else zip(rules.space.position_names, position.tolist(), strict=True)
    )
    keep(vetted, "position", None if at is None else MappingProxyType(dict(at)))
    keep(vetted, "_rules", rules)
    return vetted
