"""Charts of numbers over time: lines in their bounds, drawn with matplotlib or with Pillow."""
