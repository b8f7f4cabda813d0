"""What nearly every header is made of, as parts of patterns for ASCII."""

from __future__ import annotations

from vlmcore.limits import WeightLimits

__all__ = ["LENGTHS", "NAME", "WHOLE"]

NAME = rf"[\w.:+-]{{1,{WeightLimits().max_name_characters}}}"
"""The name of a tensor, if it needs no closer look."""

WHOLE = r"0|[1-9]\d{0,17}"
"""A whole number as JSON has it, if it is one that a file system can address."""

LENGTHS = r"(?:\d{1,18}(?:,\d{1,18}){0,63})?"
"""The lengths of a shape as writers write them, if they are whole numbers as JSON has them."""
