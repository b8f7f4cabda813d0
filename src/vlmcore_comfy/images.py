"""
Pictures between ComfyUI and the core.

ComfyUI's IMAGE is a tensor ``[B, H, W, C]`` of floats from 0 to 1 with 1, 3 or 4 channels, its MASK
``[B, H, W]``. The core takes uint8 RGB, one array a picture. Values outside are clipped one by one;
a scale is never guessed, and what is not a number is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from vlmcore._arguments import shown
from vlmcore._arrays import BoolArray, UInt8Array
from vlmcore._optional import optional_dependency
from vlmcore.errors import ContractError, MediaError
from vlmcore.limits import ImageLimits
from vlmcore.media.images import load_image

if TYPE_CHECKING:
    import torch

__all__ = ["batch_of", "each_picture", "image_of", "mask_of", "pictures_of"]


def pictures_of(name: str, images: Any, *, limits: ImageLimits | None = None) -> list[UInt8Array]:
    """
    Take the pictures out of an IMAGE.

    Args:
        name: The input that it came through, for errors.
        images: The tensor ``[B, H, W, C]``; one picture may come without its batch.
        limits: Bounds on each picture.

    Returns:
        Each picture, uint8, shape ``[H, W, 3]``; what was transparent lies on white.

    Raises:
        ContractError: If it is no IMAGE, or an empty one; or a picture is too large or has values
            that are no numbers.
        LimitExceededError: If a picture is too large.
    """
    return list(each_picture(name, batch_of(name, images), limits=limits))


def batch_of(name: str, images: Any) -> Any:
    """
    Take an IMAGE as it is: the tensor ``[B, H, W, C]``; one picture may come without its batch.

    Raises:
        ContractError: If it is no IMAGE, or an empty one.
    """
    shape = tuple(getattr(images, "shape", ()))
    if not shape:
        raise ContractError(name, f"got {shown(images)}, expected an IMAGE")
    if len(shape) == 3 and shape[-1] in (3, 4):
        images, shape = images[None], (1, *shape)
    if len(shape) != 4 or shape[-1] not in (1, 2, 3, 4):
        is_mask = len(shape) == 3
        raise ContractError(
            name,
            f"got the shape {list(shape)}, expected an IMAGE, [B, H, W, C]"
            + ("; a MASK becomes one with Convert Mask to Image" if is_mask else ""),
        )
    if 0 in shape:
        raise ContractError(name, f"got the shape {list(shape)}, expected at least one picture")
    return images


def each_picture(
    name: str,
    batch: Any,
    *,
    indices: Sequence[int] | None = None,
    limits: ImageLimits | None = None,
    before_each: Callable[[], None] = lambda: None,
) -> Iterator[UInt8Array]:
    """
    Take pictures out of a batch one by one, so that few are in memory.

    Args:
        name: The input that it came through, for errors.
        batch: What `batch_of` gave.
        indices: Which pictures; all of them if ``None``.
        limits: Bounds on each picture.
        before_each: Is called before each of them, as to end it where the person stopped the graph.

    Raises:
        ContractError: If a picture has values that are no numbers.
        LimitExceededError: If a picture is too large.
    """
    for index in range(len(batch)) if indices is None else indices:
        before_each()
        called = name if len(batch) == 1 else f"{name}[{index}]"
        yield _picture(called, batch[index], limits or ImageLimits())


def _picture(name: str, image: Any, limits: ImageLimits) -> UInt8Array:
    try:
        return load_image(image, limits=limits, layout="HWC")
    except MediaError as error:
        # It is called after what it is, a tensor; a person knows it by its socket.
        raise ContractError(name, str(error).partition(": ")[2] or str(error)) from None


def image_of(pictures: Sequence[UInt8Array]) -> torch.Tensor:
    """
    Make an IMAGE of pictures of one size, each ``[H, W, 3]``: float32, 0 to 1, ``[B, H, W, 3]``.

    Raises:
        ContractError: If there are none, or of several sizes.
        MissingDependencyError: If torch is not installed.
    """
    sizes = {picture.shape for picture in pictures}
    if len(sizes) != 1:
        raise ContractError("pictures", f"got {len(sizes)} sizes, expected pictures of one")
    with optional_dependency("local", "torch"):
        from vlmcore_comfy._torch import image_tensor  # noqa: PLC0415 - the door
    return image_tensor(pictures)


def mask_of(masks: Sequence[BoolArray]) -> torch.Tensor:
    """
    Make a MASK of masks of one size, each ``[H, W]``: float32, 0 or 1, ``[B, H, W]``.

    Raises:
        ContractError: If there are none, or of several sizes.
        MissingDependencyError: If torch is not installed.
    """
    sizes = {mask.shape for mask in masks}
    if len(sizes) != 1:
        raise ContractError("masks", f"got {len(sizes)} sizes, expected masks of one")
    with optional_dependency("local", "torch"):
        from vlmcore_comfy._torch import mask_tensor  # noqa: PLC0415 - the door
    return mask_tensor(masks)
