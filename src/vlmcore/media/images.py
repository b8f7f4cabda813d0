"""
The image door: whatever a person has becomes RGB pixels, uint8, shape ``[H, W, 3]``.

Arrays and tensors need nothing but NumPy. Encoded files are decoded by Pillow, which is imported
when the first of them comes; what their header declares is checked before.

Rules, the same for every source: EXIF orientation is applied first, transparency is composited on
a background, 16-bit values are scaled, and metadata goes no further than this door. Colour profiles
are not applied, as in the pipelines that vision-language models are trained with.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from vlmcore._arrays import UInt8Array
from vlmcore._optional import optional_dependency
from vlmcore.errors import ContractError
from vlmcore.limits import ImageLimits
from vlmcore.media.arrays import (
    WHITE,
    Background,
    Layout,
    array_from_object,
    array_from_tensor,
    is_tensor,
    require_background,
    require_layout,
    rgb_from_array,
)
from vlmcore.media.formats import ImageFormat
from vlmcore.media.headers import read_header, require_pixels
from vlmcore.media.resizing import fit_longest_edge
from vlmcore.media.sources import Encoded, is_encoded_source, read_source

__all__ = ["ImageInfo", "fit_longest_edge", "image_info", "load_image", "load_images"]

_LIMITS = ImageLimits()


def load_image(
    source: Any,
    *,
    limits: ImageLimits = _LIMITS,
    background: Background = WHITE,
    layout: Layout | None = None,
) -> UInt8Array:
    """
    Load one image as RGB pixels, from whatever holds it.

    Of an animation or a file of several pages it is the first picture; `image_info` tells how many
    there are, `vlmcore.media.frames.load_frames` gives all.

    Args:
        source: A path; the bytes of a file; a file open in binary mode, read from where it stands;
            a ``data:`` URL; a PIL image; a NumPy array or torch tensor, ``[H, W]``, ``[H, W, C]``
            or ``[C, H, W]`` with 1 to 4 channels, or a batch of one of these. Values of arrays:
            uint8; uint16, scaled from 0..65535; floats from 0 to 1, each value outside clipped;
            bool. An object with ``__array__`` is taken as its array.
        limits: Bounds on the size, checked before memory is spent.
        background: RGB, 0..255, that transparent pixels are composited on.
        layout: Which axis of an array holds the channels; needed only where the shape leaves it
            open, as ``[3, 64, 3]`` does.

    Returns:
        uint8, shape ``[H, W, 3]``, C-contiguous; a new array that shares memory with nothing.

    Raises:
        MediaLimitError: If the image is larger than *limits*.
        MediaError: If it cannot be read, names it and says why.
        ContractError: If *source* is not of one of these kinds, or an option is wrong.
        MissingDependencyError: If Pillow is needed and not installed.

    Example:
        >>> load_image(np.zeros((2, 5), dtype=np.uint8)).shape
        (2, 5, 3)
    """
    require_background(background)
    require_layout(layout)
    array: Any
    if isinstance(source, np.ndarray):
        array, name = np.asarray(source), "array"  # of a subclass, the plain values
    elif is_tensor(source):
        array, name = array_from_tensor(source, limits=limits), "tensor"
    elif _is_pil_image(source):
        with optional_dependency("images", "PIL"):
            from vlmcore.media import _pillow  # noqa: PLC0415 - the door
        name, layout = "PIL image", "HWC"
        array = _pillow.pixels_of(source, name=name, limits=limits)
    elif is_encoded_source(source):
        encoded = read_source(source, limits=limits)
        name, layout = encoded.name, "HWC"
        array = _decode(encoded, limits=limits)
    elif hasattr(source, "__array__"):
        array, name = array_from_object(source), "array"
    else:
        raise ContractError(
            "source",
            f"got {type(source).__name__}, expected a path, bytes, an open file, a data URL, "
            "a PIL image, an array or a tensor",
        )
    return rgb_from_array(array, source=name, limits=limits, background=background, layout=layout)


def load_images(
    source: Any,
    *,
    limits: ImageLimits = _LIMITS,
    background: Background = WHITE,
    layout: Layout | None = None,
) -> list[UInt8Array]:
    """
    Load every image of a sequence of sources, or of a batch.

    Args:
        source: A list or tuple of what `load_image` takes; an array or tensor ``[B, H, W, C]`` or
            ``[B, C, H, W]``; or a single source.
        limits: As for `load_image`, for each image.
        background: As for `load_image`.
        layout: As for `load_image`.

    Returns:
        The images in their order, each as from `load_image`.

    Raises:
        MediaError: As `load_image` does, at the first image that cannot be read.
        ContractError: As `load_image` does.
        MissingDependencyError: As `load_image` does.
    """
    each: Sequence[Any] = [source]
    if isinstance(source, (list, tuple)) or getattr(source, "ndim", 0) == 4:
        each = source
    return [load_image(one, limits=limits, background=background, layout=layout) for one in each]


def _decode(encoded: Encoded, *, limits: ImageLimits) -> Any:
    header = read_header(encoded, limits=limits)
    require_pixels(header, name=encoded.name, limits=limits)
    with optional_dependency("images", "PIL"):
        from vlmcore.media import _pillow  # noqa: PLC0415 - the door
    return _pillow.decode(header, name=encoded.name, limits=limits)


def _is_pil_image(source: object) -> bool:
    # While another thread is importing Pillow, it is there and has no images yet.
    kind = getattr(sys.modules.get("PIL.Image"), "Image", None)
    return kind is not None and isinstance(source, kind)


@attrs.frozen(kw_only=True)
class ImageInfo:
    """
    What an encoded image declares of itself.

    Attributes:
        image_format: Its format; the value is the media type, as ``"image/png"``.
        height_px: Height as shown, after its orientation is applied.
        width_px: Width as shown.
        frames: Pictures of an animation; 1 for a still image. Counting stops at one more than
            ``limits.max_frames``. The pages of a TIFF are not an animation.
    """

    image_format: ImageFormat
    height_px: int
    width_px: int
    frames: int


def image_info(source: Any, *, limits: ImageLimits = _LIMITS) -> ImageInfo:
    """
    Read what an encoded image declares, without decoding it; Pillow is not needed.

    Args:
        source: A path, bytes, an open file or a data URL.
        limits: Bounds on the bytes and parts that are read; any number of pixels is reported.

    Raises:
        MediaLimitError: If the file is larger than *limits*.
        MediaError: If it is not an image, or its header is broken.
        ContractError: If *source* is not of one of these kinds.
    """
    if not is_encoded_source(source):
        raise ContractError(
            "source",
            f"got {type(source).__name__}, expected a path, bytes, an open file or a data URL",
        )
    encoded = read_source(source, limits=limits)
    header = read_header(encoded, limits=limits, animated=True)
    return ImageInfo(
        image_format=header.image_format,
        height_px=header.shown_height_px,
        width_px=header.shown_width_px,
        frames=min(header.frames, limits.max_frames + 1),
    )
