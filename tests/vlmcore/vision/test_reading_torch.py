"""Places are where the processors of transformers put them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers.models.kosmos2.processing_kosmos2 import patch_index_to_coordinate

from vlmcore.vision.reading import read_detections
from vlmcore.vision.views import ImageView

CELLS = st.integers(0, 31)


@given(left=CELLS, top=CELLS, right=CELLS, bottom=CELLS)
def test_patches_of_kosmos_reach_as_far_as_its_processor_says(
    left: int, top: int, right: int, bottom: int
) -> None:
    """
    Also where both are in one row, in one column, or the same.
    """
    (left, right), (top, bottom) = sorted((left, right)), sorted((top, bottom))
    first, last = 32 * top + left, 32 * bottom + right
    text = f"<object><patch_index_{first:04}><patch_index_{last:04}></object>"

    found = read_detections(text, "kosmos-2", ImageView(height_px=1000, width_px=1000))

    expected = [1000 * side for side in patch_index_to_coordinate(first, last, 32)]
    assert pytest.approx(expected) == found[0].place.bounds
