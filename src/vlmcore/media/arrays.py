"""
RGB pixels from arrays and tensors of the layouts and types that people have.

The rules are few and none of them guesses. Axes: the channel axis is the one of length 1 to 4; if
both ends qualify, the caller has to say which. Values: ``uint8`` is taken as it is, ``uint16`` is
scaled from 0..65535, floats are 0..1 and each value outside is clipped by itself, ``bool`` is black
or white. Whatever is not a number of pixels (NaN, infinity, other integers) is refused.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from vlmcore._arrays import UInt8Array
from vlmcore.errors import ContractError, MediaError, MediaLimitError
from vlmcore.limits import ImageLimits

__all__ = [
    "WHITE",
    "Background",
    "Layout",
    "array_from_object",
    "array_from_tensor",
    "is_tensor",
    "require_background",
    "require_layout",
    "rgb_from_array",
    "values_of_tensor",
]

Layout: TypeAlias = Literal["HWC", "CHW"]
Background: TypeAlias = tuple[int, int, int]

WHITE: Background = (255, 255, 255)

_CHANNELS = range(1, 5)
_BLOCK_PIXELS = 1 << 18


def rgb_from_array(
    array: npt.NDArray[Any],
    *,
    source: str = "array",
    limits: ImageLimits,
    background: Background,
    layout: Layout | None = None,
) -> UInt8Array:
    """
    Convert one image to RGB, in a new array.

    Args:
        array: Shape ``[H, W]``, ``[H, W, C]`` or ``[C, H, W]``, or one of these behind a batch axis
            of length 1; C is 1 (grey), 2 (grey, alpha), 3 (RGB) or 4 (RGB, alpha). Type bool,
            uint8, uint16 or floating.
        source: What the image is called in errors.
        limits: Bounds on its size.
        background: RGB, 0..255, that transparent pixels are composited on.
        layout: The order of the axes; ``None`` takes the one that is possible.

    Returns:
        uint8, shape ``[H, W, 3]``, C-contiguous; never memory of the caller.

    Raises:
        MediaLimitError: If it has more than ``limits.max_pixels`` pixels.
        MediaError: If shape, type or values are not those of an image.
    """
    pixels = _as_hwc(array, source=source, layout=layout)
    height, width, _ = pixels.shape
    if height * width > limits.max_pixels:
        raise MediaLimitError(source, "max_pixels", height * width, limits.max_pixels)
    if pixels.dtype.kind not in "bf" and pixels.dtype.newbyteorder("=") not in (
        np.uint8,
        np.uint16,
    ):
        raise MediaError(
            source,
            f"got {pixels.dtype}, expected uint8, uint16, bool, or floats from 0 to 1; "
            "values from 0 to 255 become uint8 with .astype('uint8')",
        )
    rgb = np.empty((height, width, 3), dtype=np.uint8)
    not_finite = 0
    for rows, columns in _blocks(height, width):
        block = pixels[rows, columns]
        if block.dtype.kind == "f":
            not_finite += block.size - int(np.count_nonzero(np.isfinite(block)))
            if not_finite:
                continue
        rgb[rows, columns] = _without_alpha(_to_uint8(block), background)
    if not_finite:
        raise MediaError(
            source, f"{not_finite} of {pixels.size} values are NaN or infinite, expected none"
        )
    return rgb


def _blocks(height: int, width: int) -> Iterator[tuple[slice, slice]]:
    """Cut an image into blocks, so that what is computed between takes little memory."""
    columns = min(width, _BLOCK_PIXELS)
    rows = max(1, _BLOCK_PIXELS // columns)
    for top in range(0, height, rows):
        for left in range(0, width, columns):
            yield slice(top, top + rows), slice(left, left + columns)


def _to_uint8(block: npt.NDArray[Any]) -> UInt8Array:
    if block.dtype == np.uint8:
        return block
    scaled: npt.NDArray[Any]
    if block.dtype.kind == "b":
        scaled = np.where(block, 255, 0)
    elif block.dtype.kind == "f":
        scaled = np.clip(block, 0, 1).astype(
            np.float32 if block.itemsize <= 4 else np.float64, copy=False
        )
        np.multiply(scaled, 255, out=scaled)
        np.rint(scaled, out=scaled)
    else:
        scaled = (block.astype(np.uint32) + 128) // 257  # 65535 / 255 is 257
    return scaled.astype(np.uint8)


def _without_alpha(block: UInt8Array, background: Background) -> UInt8Array:
    channels = block.shape[-1]
    if channels in (1, 3):
        return block  # one channel is broadcast to three by the assignment
    alpha = block[..., -1:].astype(np.uint32)
    behind = np.array(background, dtype=np.uint32)
    mixed = block[..., :-1] * alpha + behind * (255 - alpha)
    return ((mixed + 127) // 255).astype(np.uint8)


def _as_hwc(array: npt.NDArray[Any], *, source: str, layout: Layout | None) -> npt.NDArray[Any]:
    pixels = array
    if pixels.ndim == 4 and pixels.shape[0] == 1:
        pixels = pixels[0]
    if pixels.ndim == 2:
        pixels = pixels[:, :, np.newaxis]
        layout = "HWC"
    shape = list(array.shape)
    if pixels.ndim == 4:
        raise MediaError(
            source, f"shape {shape} is a batch of {shape[0]}, expected one image: use load_images()"
        )
    if pixels.ndim != 3:
        raise MediaError(source, f"shape {shape}, expected [H, W], [H, W, C] or [C, H, W]")
    if _resolve_layout(pixels.shape, source=source, layout=layout) == "CHW":
        pixels = pixels.transpose(1, 2, 0)
    if pixels.size == 0:
        raise MediaError(source, f"shape {shape} has no pixels")
    return pixels


def _resolve_layout(shape: tuple[int, ...], *, source: str, layout: Layout | None) -> Layout:
    possible: list[Layout] = []
    if shape[-1] in _CHANNELS:
        possible.append("HWC")
    if shape[0] in _CHANNELS:
        possible.append("CHW")
    if layout in possible:
        return layout
    if layout is None and len(possible) == 1:
        return possible[0]
    if layout is None and possible:
        raise MediaError(
            source,
            f"shape {list(shape)} is ambiguous: as HWC it is {shape[1]} x {shape[0]} pixels of "
            f"{shape[2]} channels, as CHW {shape[2]} x {shape[1]} pixels of {shape[0]}; "
            "say which with layout='HWC' or layout='CHW'",
        )
    raise MediaError(
        source, f"shape {list(shape)} as {layout or 'HWC or CHW'}: expected 1 to 4 channels"
    )


def is_tensor(source: object) -> bool:
    """Tell whether *source* is a torch tensor, without importing torch."""
    # While another thread is importing torch, it is there and has no tensors yet.
    kind = getattr(sys.modules.get("torch"), "Tensor", None)
    return kind is not None and isinstance(source, kind)


def array_from_tensor(
    tensor: Any, *, source: str = "tensor", limits: ImageLimits
) -> npt.NDArray[Any]:
    """
    Bring a torch tensor of any device into a NumPy array; bfloat16 becomes float32.

    The array may share memory with the tensor.

    Raises:
        MediaLimitError: If it is too large for one image; it is not brought over then.
        MediaError: If it has no plain values (a meta, sparse or quantised tensor).
    """
    if tensor.numel() > limits.max_pixels * max(_CHANNELS):
        ends = (*tensor.shape[-1:], *tensor.shape[-3:-2])
        channels = next((count for count in ends if count in _CHANNELS), 1)
        pixels = tensor.numel() // channels
        raise MediaLimitError(source, "max_pixels", pixels, limits.max_pixels)
    return values_of_tensor(tensor, source=source)


def values_of_tensor(tensor: Any, *, source: str = "tensor") -> npt.NDArray[Any]:
    """
    Bring a torch tensor of any device and size into a NumPy array, as `array_from_tensor` does.

    Raises:
        MediaError: If it has no plain values (a meta, sparse or quantised tensor).
    """
    try:
        values = tensor.detach()
        if values.is_floating_point() and values.element_size() <= 2:
            values = values.float()  # NumPy has no bfloat16
        array: npt.NDArray[Any] = values.cpu().resolve_conj().resolve_neg().numpy()
    except (RuntimeError, TypeError, NotImplementedError, ValueError) as error:
        raise MediaError(source, f"has no plain values: {error}") from error
    return array


def array_from_object(source: Any) -> npt.NDArray[Any]:
    """
    Take the array of an object that hands it out by ``__array__``; it may share memory.

    Raises:
        MediaError: If it does not.
    """
    try:
        array: npt.NDArray[Any] = np.asarray(source)
    except Exception as error:  # foreign code: whatever it raises, there are no pixels
        raise MediaError(type(source).__name__, f"gives no array: {error}") from error
    return array


def require_background(background: object) -> None:
    """
    Require a colour, three whole numbers from 0 to 255.

    Raises:
        ContractError: If it is anything else.
    """
    parts = background if isinstance(background, (tuple, list)) else ()
    whole = all(isinstance(part, (int, np.integer)) and 0 <= part <= 255 for part in parts)
    if len(parts) != 3 or not whole or bool in map(type, parts):
        raise ContractError(
            "background", f"got {background!r}, expected (red, green, blue), 0..255"
        )


def require_layout(layout: object) -> None:
    """
    Require a layout, or none.

    Raises:
        ContractError: If it is anything else.
    """
    if layout is not None and (not isinstance(layout, str) or layout not in ("HWC", "CHW")):
        raise ContractError("layout", f"got {layout!r}, expected 'HWC', 'CHW' or None")
