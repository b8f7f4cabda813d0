"""
Images and videos: from whatever a person has to RGB pixels, and back.

Importing this package imports neither Pillow nor PyAV.
"""

from typing import TYPE_CHECKING

from vlmcore.media.encoding import data_url, encode_jpeg, encode_png
from vlmcore.media.formats import ImageFormat
from vlmcore.media.frames import Frames, load_frames
from vlmcore.media.images import ImageInfo, image_info, load_image, load_images
from vlmcore.media.resizing import Resampling, fit_longest_edge, fit_pixel_budget, resize

if TYPE_CHECKING:
    from vlmcore.media.budgets import PixelBudget
    from vlmcore.media.profiles import find_profile
    from vlmcore.media.sampling import SampledVideo, sample_frames
    from vlmcore.media.selections import FrameSampling, SamplingStrategy
    from vlmcore.media.video import open_video, sample_video

__all__ = [
    "FrameSampling",
    "Frames",
    "ImageFormat",
    "ImageInfo",
    "PixelBudget",
    "Resampling",
    "SampledVideo",
    "SamplingStrategy",
    "data_url",
    "encode_jpeg",
    "encode_png",
    "find_profile",
    "fit_longest_edge",
    "fit_pixel_budget",
    "image_info",
    "load_frames",
    "load_image",
    "load_images",
    "open_video",
    "resize",
    "sample_frames",
    "sample_video",
]

if not TYPE_CHECKING:  # for a type checker every name would then be one of ours

    def __getattr__(name: str) -> object:
        # ``import vlmcore`` comes by here: what is for budgets and videos waits until it is used.
        match name:
            case "PixelBudget":
                from vlmcore.media.budgets import PixelBudget as value
            case "find_profile":
                from vlmcore.media.profiles import find_profile as value
            case "SampledVideo":
                from vlmcore.media.sampling import SampledVideo as value
            case "sample_frames":
                from vlmcore.media.sampling import sample_frames as value
            case "FrameSampling":
                from vlmcore.media.selections import FrameSampling as value
            case "SamplingStrategy":
                from vlmcore.media.selections import SamplingStrategy as value
            case "open_video":
                from vlmcore.media.video import open_video as value
            case "sample_video":
                from vlmcore.media.video import sample_video as value
            case _:
                raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value
