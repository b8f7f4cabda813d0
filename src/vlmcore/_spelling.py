"""Names that were nearly right, and what was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

__all__ = ["did_you_mean"]


def did_you_mean(name: str, spellings: Mapping[str, str]) -> str:
    """
    Say which names are close to *name*, for the end of an error message.

    Args:
        name: What was given.
        spellings: How names may be spelled, in lower case, and the name that is meant by each.

    Returns:
        ``"; did you mean 'a' or 'b'?"`` with three names at most; nothing where nothing is close.

    Example:
        >>> did_you_mean("Pi-0", {"pi0": "pi0", "openpi/pi0": "pi0", "octo": "octo-small"})
        "; did you mean 'pi0'?"
    """
    close = difflib.get_close_matches(name.strip().lower(), spellings, n=3, cutoff=0.7)
    names = list(dict.fromkeys(spellings[spelling] for spelling in close))
    return f"; did you mean {' or '.join(repr(each) for each in names)}?" if names else ""
