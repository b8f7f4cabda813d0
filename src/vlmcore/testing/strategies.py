"""Hypothesis strategies for what predictors are given: images, prompts, options."""

from __future__ import annotations

from vlmcore._arrays import UInt8Array
from vlmcore._optional import optional_dependency
from vlmcore.vlm.generation import GenerationOptions
from vlmcore.vlm.prompt import Prompt

with optional_dependency("testing", "hypothesis"):
    from hypothesis import strategies as st
    from hypothesis.extra import numpy as hnp

__all__ = ["generation_options", "images", "prompts"]

_ODD_SIDES = (1, 2, 3, 7, 13, 27, 28, 29, 55)  # around the patch sizes of real models, and a line


def images(*, max_side_px: int = 64) -> st.SearchStrategy[UInt8Array]:
    """
    Images as models get them: uint8 RGB of shape ``[H, W, 3]``, of every odd size from 1 x 1 on.

    Args:
        max_side_px: The longest side, in pixels, at least 1.

    Example:
        >>> from hypothesis import find
        >>> find(images(), lambda image: image.shape[1] > image.shape[0]).shape
        (1, 2, 3)
    """
    odd = [side for side in _ODD_SIDES if side <= max_side_px]
    sides = st.one_of(st.sampled_from(odd), st.integers(1, max_side_px))
    shapes = st.tuples(sides, sides, st.just(3))
    return hnp.arrays("uint8", shapes, elements=st.integers(0, 255), fill=st.integers(0, 255))


def _texts() -> st.SearchStrategy[str]:
    """Draw text in any script, of what can be encoded; a lone surrogate is not a character."""
    return st.text(st.characters(codec="utf-8"), max_size=80)


@st.composite
def prompts(
    draw: st.DrawFn, *, max_images: int = 2, video: bool = True, max_side_px: int = 64
) -> Prompt:
    """
    Prompts with a text in any script, and with images, a video, both or neither.

    Args:
        draw: Given by hypothesis.
        max_images: How many images at the most.
        video: Whether some have a video.
        max_side_px: The longest side of what is to be seen, in pixels.

    Example:
        >>> from hypothesis import Phase, find, settings
        >>> any_will_do = settings(phases=[Phase.generate])  # the simplest takes long to find
        >>> several = lambda prompt: len(prompt.images) > 1
        >>> len(find(prompts(), several, settings=any_will_do).images) > 1
        True
    """
    frames = None
    if video and draw(st.booleans()):
        sides = st.integers(1, min(max_side_px, 16))
        shape = (draw(st.integers(1, 4)), draw(sides), draw(sides), 3)
        frames = draw(hnp.arrays("uint8", shape))
    return Prompt(
        text=draw(_texts().filter(str.strip)),
        system=draw(st.one_of(st.just(""), _texts())),
        images=tuple(draw(st.lists(images(max_side_px=max_side_px), max_size=max_images))),
        video=frames,
        video_rate_hz=draw(st.sampled_from((0.5, 1.0, 24.0, 29.97))),
    )


def generation_options(*, max_new_tokens: int = 64) -> st.SearchStrategy[GenerationOptions]:
    """
    Options of every kind, greedy and sampling.

    Args:
        max_new_tokens: The longest answer that is asked for, in tokens.

    Example:
        >>> from hypothesis import find
        >>> find(generation_options(), lambda options: options.samples).samples
        True
    """
    return st.builds(
        GenerationOptions,
        max_new_tokens=st.integers(1, max_new_tokens),
        temperature=st.one_of(st.just(0.0), st.floats(0.01, 2.0)),
        top_p=st.floats(0.05, 1.0),
        top_k=st.one_of(st.none(), st.integers(1, 100)),
        seed=st.one_of(st.none(), st.integers(0, (1 << 63) - 1)),
        repetition_penalty=st.floats(1.0, 1.5),
        stop=st.lists(st.text(min_size=1, max_size=3), max_size=2).map(tuple),
        thinking=st.one_of(st.none(), st.booleans()),
        stop_on_repetition=st.booleans(),
    )
