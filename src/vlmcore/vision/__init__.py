"""
Places in images: boxes, points and polygons that models answer, in pixels of the image.

Importing this package does not import Pillow.
"""

from vlmcore.vision.crops import Crop, crop_detections
from vlmcore.vision.detections import Detection, Detections
from vlmcore.vision.dialects import DIALECTS, Dialect, detect_dialect
from vlmcore.vision.documents import detections_from_json, detections_to_json
from vlmcore.vision.places import Box, Point, Polygon
from vlmcore.vision.reading import SpatialAnswer, read_detections, read_spatial_answer
from vlmcore.vision.views import ImageView

__all__ = [
    "DIALECTS",
    "Box",
    "Crop",
    "Detection",
    "Detections",
    "Dialect",
    "ImageView",
    "Point",
    "Polygon",
    "SpatialAnswer",
    "crop_detections",
    "detect_dialect",
    "detections_from_json",
    "detections_to_json",
    "read_detections",
    "read_spatial_answer",
]
