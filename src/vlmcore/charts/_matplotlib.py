"""Charts as figures of matplotlib."""

import matplotlib as mpl

__all__ = ["mpl"]
