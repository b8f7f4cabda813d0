"""The size that policies of openpi were trained with: frames made to fit, on black."""

from __future__ import annotations

from vlmcore._arrays import UInt8Array, readonly_image, require_count
from vlmcore._optional import optional_dependency
from vlmcore.limits import ContractLimits, require_at_most

__all__ = ["resize_with_pad"]


def resize_with_pad(frame: UInt8Array, *, height_px: int, width_px: int) -> UInt8Array:
    """
    Resize a frame to fit, keeping its proportions, in the middle of black.

    The result is that of openpi-client's function of this name, bit by bit: a policy sees what it
    was trained with. A frame that has this size is returned as it is, the same array. Where the
    proportions are so extreme that a side would vanish, it is one pixel.

    Args:
        frame: RGB, uint8, shape ``[H, W, 3]``.
        height_px: Height of the result.
        width_px: Width of the result.

    Returns:
        An array of uint8, shape ``[height_px, width_px, 3]``.

    Raises:
        ContractError: If *frame* is not such an array, or a size is not at least 1.
        LimitExceededError: If the result would have more pixels than a frame may.
        MissingDependencyError: If Pillow is needed and not installed.

    Source:
        ``openpi_client.image_tools`` of openpi-client 0.1.2, after ``tf.image.resize_with_pad``.
    """
    require_count(height_px=height_px, width_px=width_px)
    require_at_most("max_frame_pixels", height_px * width_px, ContractLimits().max_frame_pixels)
    readonly_image(frame, field="frame")
    height, width = frame.shape[:2]
    if (height, width) == (height_px, width_px):
        return frame
    # In floats and cut, as openpi-client does: exact numbers would differ from it by a pixel.
    ratio = max(width / width_px, height / height_px)
    with optional_dependency("robotics", "PIL"):
        from vlmcore_robotics.wire import _pillow  # noqa: PLC0415 - the door
    return _pillow.padded(
        frame,
        height_px=height_px,
        width_px=width_px,
        inner_height_px=max(1, int(height / ratio)),
        inner_width_px=max(1, int(width / ratio)),
    )
