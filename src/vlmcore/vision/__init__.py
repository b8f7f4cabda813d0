"""Places in images: boxes, points and polygons that models answer, in pixels of the image."""
