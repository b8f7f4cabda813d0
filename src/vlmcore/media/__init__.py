"""
Images: from whatever a person has to RGB pixels, and back.

Importing this package does not import Pillow.
"""

from vlmcore.media.budgets import PixelBudget
from vlmcore.media.encoding import data_url, encode_jpeg, encode_png
from vlmcore.media.formats import ImageFormat
from vlmcore.media.frames import Frames, load_frames
from vlmcore.media.images import ImageInfo, image_info, load_image, load_images
from vlmcore.media.profiles import PROFILES, find_profile
from vlmcore.media.resizing import Resampling, fit_longest_edge, fit_pixel_budget, resize
from vlmcore.media.sampling import SampledVideo, sample_frames
from vlmcore.media.selections import FrameSampling, SamplingStrategy

__all__ = [
    "PROFILES",
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
    "resize",
    "sample_frames",
]
