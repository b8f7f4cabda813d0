"""What one robot reports and accepts: the dimensions of its actions, their bounds, its cameras."""

from __future__ import annotations

import enum
import hashlib
import json
import math

import attrs
import numpy as np

from vlmcore._arguments import require_characters, shown
from vlmcore._arrays import (
    BoolArray,
    Float64Array,
    as_tuple,
    immutable,
    plain_float,
    require_count,
    require_member,
    require_name,
    require_names,
    require_positive,
)
from vlmcore._copying import through_constructor
from vlmcore.contracts._fineness import (
    require_fine_positions,
    require_fine_step,
    require_fine_turn,
    require_reachable_level,
)
from vlmcore.contracts._html import embodiment_html
from vlmcore.contracts.dimensions import ActionDim, Reference
from vlmcore.contracts.rotations import RotationGroup
from vlmcore.errors import ContractError
from vlmcore.limits import ContractLimits, require_at_most

__all__ = ["ActionDim", "ActionSpace", "CameraSpec", "Embodiment", "LimitsSource", "Reference"]

_LIMITS = ContractLimits()


class LimitsSource(enum.Enum):
    """Where the bounds of an embodiment come from."""

    TEMPLATE = "template"  # a starting point for workflows, certified by nobody
    DATASET = "dataset"  # the statistics of what a checkpoint was trained on
    MANUFACTURER = "manufacturer"  # the data sheet of the robot or its controller


@attrs.frozen(kw_only=True)
class ActionSpace:
    """
    The dimensions of an action in their order, and how often one is sent.

    1 to 2,048 dimensions with unique names, at a rate above 0 and up to 10,000 Hz. Steps, and the
    ranges of positions, are at least 3.6e-13 of the numbers that they bound, which float64 would
    round away otherwise. What the dimensions say is also there as arrays of shape ``[D]``, which
    cannot be written to, but by what does not ask: hand torch a copy.

    Attributes:
        dims: The dimensions.
        rate_hz: Control steps a second.
        rotations: What ``ActionDim.rotation`` names: rotations in space, each of 3, 4 or 6
            dimensions side by side.
        names: Their names.
        low: The smallest value of each, float64.
        high: The largest value of each, float64.
        max_step: The largest change from one step to the next, float64; infinite for a dimension
            that has no bound of its own, as one with levels or of a rotation.
        period: One turn of each rotation without end stops, float64; NaN for all others.
        position_names: Those that bound a position, which the gate must be told.
        position_low: The smallest position that each change, rate or offset may lead to, float64;
            minus infinity where nothing is said.
        position_high: The largest; infinity where nothing is said.
        is_change: Which are changes, rates or torques, so that zero stops them at once.
        is_target: Which are places to go to; of all others the first step may be counted from zero.
        offsets: Indices of the offsets from where a chunk begins.
        is_discrete: Which know only some levels.

    Raises:
        ContractError: If a field is not as described.

    Example:
        >>> wrist = ActionDim(name="wrist", unit="rad", low=-2.0, high=2.0, max_rate=1.5)
        >>> ActionSpace(dims=(wrist,), rate_hz=30).max_step
        array([0.05])
    """

    dims: tuple[ActionDim, ...] = attrs.field(converter=as_tuple)
    rate_hz: float = attrs.field(converter=plain_float)
    rotations: tuple[RotationGroup, ...] = attrs.field(default=(), converter=as_tuple)
    names: tuple[str, ...] = attrs.field(init=False, eq=False, repr=False)
    low: Float64Array = attrs.field(init=False, eq=False, repr=False)
    high: Float64Array = attrs.field(init=False, eq=False, repr=False)
    max_step: Float64Array = attrs.field(init=False, eq=False, repr=False)
    period: Float64Array = attrs.field(init=False, eq=False, repr=False)
    position_names: tuple[str, ...] = attrs.field(init=False, eq=False, repr=False)
    position_low: Float64Array = attrs.field(init=False, eq=False, repr=False)
    position_high: Float64Array = attrs.field(init=False, eq=False, repr=False)
    is_change: BoolArray = attrs.field(init=False, eq=False, repr=False)
    is_target: BoolArray = attrs.field(init=False, eq=False, repr=False)
    offsets: tuple[int, ...] = attrs.field(init=False, eq=False, repr=False)
    is_discrete: BoolArray = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        dims = self.dims
        if not isinstance(dims, tuple) or not all(isinstance(dim, ActionDim) for dim in dims):
            raise ContractError("dims", f"got {shown(dims)}, expected a tuple of ActionDim")
        names = tuple(dim.name for dim in dims)
        require_names(
            "dims",
            names,
            max_count=_LIMITS.max_actions,
            max_characters=_LIMITS.max_name_characters,
        )
        require_positive(rate_hz=self.rate_hz)
        if self.rate_hz > _LIMITS.max_rate_hz:
            raise ContractError(
                "rate_hz", f"got {self.rate_hz:g}, expected at most {_LIMITS.max_rate_hz}"
            )
        self._check_rotations()
        nan, infinity = math.nan, math.inf
        numbers = {
            "low": [dim.low for dim in dims],
            "high": [dim.high for dim in dims],
            "max_step": [self._step(dim) for dim in dims],
            "period": [nan if dim.period is None else dim.period for dim in dims],
            "position_low": [
                -infinity if dim.position_low is None else dim.position_low for dim in dims
            ],
            "position_high": [
                infinity if dim.position_high is None else dim.position_high for dim in dims
            ],
        }
        truths = {
            "is_change": [dim.reference.is_change for dim in dims],
            "is_target": [dim.reference.is_target for dim in dims],
            "is_discrete": [dim.is_discrete for dim in dims],
        }
        keep = object.__setattr__  # the class is frozen, and these are made once
        keep(self, "names", names)
        positioned = tuple(dim.name for dim in dims if dim.position_low is not None)
        keep(self, "position_names", positioned)
        references = [dim.reference for dim in dims]
        is_offset = [reference is Reference.CHUNK_RELATIVE for reference in references]
        keep(self, "offsets", tuple(np.flatnonzero(is_offset).tolist()))
        for field, values in numbers.items():
            keep(self, field, immutable(np.array(values, np.float64)))
        for field, flags in truths.items():
            keep(self, field, immutable(np.array(flags, np.bool_)))

    __reduce__ = through_constructor

    def index(self, name: str) -> int:
        """
        Find the position of the dimension *name*.

        Raises:
            ContractError: If there is none of this name.
        """
        try:
            return self.names.index(name)
        except ValueError:
            raise ContractError(
                "name", f"got {shown(name)}, expected one of {', '.join(self.names)}"
            ) from None

    def digest(self) -> str:
        """Digest all that it says, SHA-256: two spaces that differ in anything differ here."""
        said = attrs.asdict(self, filter=lambda field, _: field.init)
        text = json.dumps(said, sort_keys=True, default=lambda member: member.value)
        return hashlib.sha256(text.encode()).hexdigest()

    def _check_rotations(self) -> None:
        groups = self.rotations
        if not isinstance(groups, tuple) or not all(isinstance(g, RotationGroup) for g in groups):
            raise ContractError(
                "rotations", f"got {shown(groups)}, expected a tuple of RotationGroup"
            )
        known = [group.name for group in groups]
        if len(set(known)) < len(known):
            raise ContractError("rotations", f"got {known}, expected each name once")
        for dim in self.dims:
            if dim.rotation is not None and dim.rotation not in known:
                raise ContractError(
                    "rotations",
                    f"got {known}, expected {dim.rotation!r} among them, which {dim.name!r} names",
                )
        for group in groups:
            group.columns(self.dims)
            require_fine_turn(group, self.rate_hz)

    def _step(self, dim: ActionDim) -> float:
        step = math.inf if dim.max_step is None else dim.max_step
        if dim.max_rate is not None:
            step = dim.max_rate / self.rate_hz
        if dim.max_rate is not None and not 0 < step < math.inf:
            raise ContractError(
                "max_rate",
                f"got {dim.max_rate:g} for {dim.name!r} at {self.rate_hz:g} Hz, "
                "expected a step that float64 can hold",
            )
        require_fine_step(dim, step)
        require_reachable_level(dim, step)
        require_fine_positions(dim, self.rate_hz)
        return step


@attrs.frozen(kw_only=True)
class CameraSpec:
    """
    A camera of a robot.

    Attributes:
        name: As in the observations that a policy is shown.
        height_px: Height of its frames; ``None`` if any will do. Given together with *width_px*.
        width_px: Width of its frames.
    """

    name: str
    height_px: int | None = None
    width_px: int | None = None

    def __attrs_post_init__(self) -> None:
        require_name("name", self.name, max_characters=_LIMITS.max_name_characters)
        if self.height_px is None and self.width_px is None:
            return
        if self.height_px is None or self.width_px is None:
            missing = "height_px" if self.height_px is None else "width_px"
            raise ContractError(missing, "got None, expected both sides or neither")
        require_count(height_px=self.height_px, width_px=self.width_px)
        pixels = self.height_px * self.width_px
        require_at_most("max_frame_pixels", pixels, _LIMITS.max_frame_pixels)


@attrs.frozen(kw_only=True)
class Embodiment:
    """
    What one robot reports and accepts.

    Names are unique among the states and among the cameras; there is at least one of each.

    Attributes:
        name: Of the robot, or of the template.
        state_names: What the numbers of a state are, in their order.
        actions: What may be commanded.
        cameras: What a policy sees through.
        limits_source: Where the bounds come from. A template's are nobody's promise.
        action_mode: What the documents call the way of control. It is kept and never read: what
            the numbers mean is said by ``ActionDim.reference``.
        notes: For people.

    Raises:
        ContractError: If a field is not as described.
    """

    name: str
    state_names: tuple[str, ...] = attrs.field(converter=as_tuple)
    actions: ActionSpace
    cameras: tuple[CameraSpec, ...] = attrs.field(converter=as_tuple)
    limits_source: LimitsSource
    action_mode: str = ""
    notes: str = ""

    def __attrs_post_init__(self) -> None:
        longest = _LIMITS.max_name_characters
        require_name("name", self.name, max_characters=longest)
        require_names(
            "state_names", self.state_names, max_count=_LIMITS.max_state, max_characters=longest
        )
        if not isinstance(self.actions, ActionSpace):
            raise ContractError(
                "actions", f"got {type(self.actions).__name__}, expected an ActionSpace"
            )
        cameras = self.cameras
        if not isinstance(cameras, tuple) or not all(isinstance(c, CameraSpec) for c in cameras):
            raise ContractError("cameras", f"got {shown(cameras)}, expected a tuple of CameraSpec")
        require_names(
            "cameras", self.camera_names, max_count=_LIMITS.max_cameras, max_characters=longest
        )
        require_member(LimitsSource, limits_source=self.limits_source)
        mode = self.action_mode
        require_name("action_mode", mode, max_characters=longest, may_be_empty=True)
        if not isinstance(self.notes, str):
            raise ContractError("notes", f"got {type(self.notes).__name__}, expected text")
        require_at_most("max_notes_characters", len(self.notes), _LIMITS.max_notes_characters)
        require_characters("notes", self.notes)

    def _repr_html_(self) -> str:
        return embodiment_html(self)

    @property
    def camera_names(self) -> tuple[str, ...]:
        """The names of the cameras."""
        return tuple(camera.name for camera in self.cameras)
