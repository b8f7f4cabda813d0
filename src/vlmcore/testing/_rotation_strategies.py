"""Hypothesis strategies for the dimensions of an action that are rotations together."""

from __future__ import annotations

import math

from vlmcore._optional import optional_dependency
from vlmcore.contracts.dimensions import ActionDim
from vlmcore.contracts.rotations import RotationForm, RotationGroup

with optional_dependency("testing", "hypothesis"):
    from hypothesis import strategies as st

__all__ = ["some_rotations"]


@st.composite
def some_rotations(
    draw: st.DrawFn, names: list[str], rate_hz: float
) -> tuple[tuple[RotationGroup, ...], dict[str, ActionDim]]:
    """
    Rotations of some of the dimensions *names* of a space, and these dimensions by their names.

    Args:
        draw: Given by hypothesis.
        names: The dimensions of the space in their order.
        rate_hz: Control steps a second.
    """
    groups: list[RotationGroup] = []
    dims: dict[str, ActionDim] = {}
    at = 0
    while len(names) - at >= min(form.size for form in RotationForm):
        form = draw(st.sampled_from((None, *RotationForm)))
        if form is None or form.size > len(names) - at:
            at += 1
            continue
        step, bound = draw(st.floats(1e-6, 3.0)), draw(st.floats(0.1, 1.01) | st.just(1.01))
        by_step = draw(st.booleans())
        groups.append(
            RotationGroup(
                name=names[at],
                form=form,
                max_step_rad=step if by_step else None,
                max_rate_rad_s=None if by_step else step * rate_hz,
            )
        )
        bound *= 2 * math.pi if form is RotationForm.AXIS_ANGLE else 1.0
        for name in names[at : at + form.size]:
            dims[name] = ActionDim(name=name, low=-bound, high=bound, rotation=names[at])
        at += form.size
    return tuple(groups), dims
