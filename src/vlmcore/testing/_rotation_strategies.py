"""Hypothesis strategies for the dimensions of an action that are rotations together."""

from __future__ import annotations

import math

from vlmcore._optional import optional_dependency
from vlmcore.contracts.dimensions import ActionDim
from vlmcore.contracts.rotations import RotationForm, RotationGroup
from vlmcore.testing._plain_strategies import names

with optional_dependency("testing", "hypothesis"):
    from hypothesis import strategies as st

__all__ = ["rotation_groups", "some_rotations"]


@st.composite
def rotation_groups(
    draw: st.DrawFn,
    *,
    name: str | None = None,
    form: RotationForm | None = None,
    rate_hz: float = 20.0,
) -> RotationGroup:
    """
    Rotations in space of every form, bounded by step or by rate.

    Args:
        draw: Given by hypothesis.
        name: Their name; drawn unless given.
        form: How they are written; drawn unless given.
        rate_hz: The rate of the space that they are for.

    Example:
        >>> from hypothesis import find
        >>> find(rotation_groups(), lambda group: group.max_rate_rad_s is None).form
        <RotationForm.QUATERNION_XYZW: 'quaternion_xyzw'>
    """
    step = draw(st.floats(1e-6, 3.0))
    by_step = draw(st.booleans())
    return RotationGroup(
        name=draw(names()) if name is None else name,
        form=draw(st.sampled_from(RotationForm)) if form is None else form,
        max_step_rad=step if by_step else None,
        max_rate_rad_s=None if by_step else step * rate_hz,
    )


@st.composite
def some_rotations(
    draw: st.DrawFn, called: list[str], rate_hz: float
) -> tuple[tuple[RotationGroup, ...], dict[str, ActionDim]]:
    """
    Rotations of some of the dimensions *called* of a space, and these dimensions by their names.

    Args:
        draw: Given by hypothesis.
        called: The dimensions of the space in their order.
        rate_hz: Control steps a second.
    """
    groups: list[RotationGroup] = []
    dims: dict[str, ActionDim] = {}
    at = 0
    while len(called) - at >= min(form.size for form in RotationForm):
        form = draw(st.sampled_from((None, *RotationForm)))
        if form is None or form.size > len(called) - at:
            at += 1
            continue
        bound = draw(st.floats(0.1, 1.01) | st.just(1.01))
        groups.append(draw(rotation_groups(name=called[at], form=form, rate_hz=rate_hz)))
        bound *= 2 * math.pi if form is RotationForm.AXIS_ANGLE else 1.0
        for name in called[at : at + form.size]:
            dims[name] = ActionDim(name=name, low=-bound, high=bound, rotation=called[at])
        at += form.size
    return tuple(groups), dims
