"""The ports at which servers listen, and that clients dial, where nobody says another one."""

from __future__ import annotations

from typing import Final

__all__ = ["GROOT_PORT", "HTTP_PORT", "OPENPI_PORT"]

HTTP_PORT: Final = 8787
"""That of ``comfyui-vla-http-v1``."""

OPENPI_PORT: Final = 8000
"""That of openpi."""

GROOT_PORT: Final = 5555
"""That of Isaac-GR00T."""
