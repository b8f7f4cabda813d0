"""
Images: from whatever a person has to RGB pixels, and back.

Importing this package does not import Pillow.
"""

from vlmcore.media.encoding import data_url, encode_jpeg, encode_png
from vlmcore.media.formats import ImageFormat
from vlmcore.media.frames import Frames, load_frames
from vlmcore.media.images import ImageInfo, image_info, load_image, load_images
from vlmcore.media.resizing import fit_longest_edge, fit_pixel_budget, resize

__all__ = [
    "Frames",
    "ImageFormat",
    "ImageInfo",
    "data_url",
    "encode_jpeg",
    "encode_png",
    "fit_longest_edge",
    "fit_pixel_budget",
    "image_info",
    "load_frames",
    "load_image",
    "load_images",
    "resize",
]
