"""Charts as pixels."""

from PIL import Image

__all__ = ["Image"]
