"""Episodes as recordings of Rerun."""

import rerun

__all__ = ["rerun"]
