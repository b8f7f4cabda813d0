"""The sizes of `vlmcore.vision.views` are those of the processors of transformers."""

from __future__ import annotations

from hypothesis import assume, example, given
from hypothesis import strategies as st

from vlmcore.vision.views import ImageView

try:  # transformers 5, where the other module needs torchvision
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize
except ModuleNotFoundError:
    from transformers.models.qwen2_vl.image_processing_qwen2_vl import smart_resize

SIDES = st.integers(1, 5000)


@example(height=1, width=36, multiple=28, most=10)
@example(height=288, width=8, multiple=32, most=10)
@given(height=SIDES, width=SIDES, multiple=st.sampled_from([28, 32]), most=st.integers(10, 16384))
def test_qwen_is_shown_what_its_processor_makes(
    height: int, width: int, multiple: int, most: int
) -> None:
    """
    Absolute coordinates are of exactly this size.
    """
    assume(max(height, width) <= 200 * min(height, width))
    least, most = 4 * multiple * multiple, most * multiple * multiple
    expected = smart_resize(height, width, factor=multiple, min_pixels=least, max_pixels=most)
    assume(min(expected) > 0)

    view = ImageView.qwen(
        height_px=height, width_px=width, multiple_px=multiple, min_pixels=least, max_pixels=most
    )

    assert expected == (view.seen_height_px, view.seen_width_px)
