"""Where MiniMax is: two places, each with keys of its own, and no third."""

from __future__ import annotations

import enum

from vlmcore.endpoint import Endpoint

__all__ = ["Region"]

_HOSTS = {"global_en": "api.minimax.io", "cn_zh": "api.minimaxi.com"}


class Region(enum.Enum):
    """
    Which MiniMax the key is of. The key goes to its own host only, encrypted.

    Example:
        >>> Region.GLOBAL_EN.endpoint.url
        'https://api.minimax.io:443'
    """

    GLOBAL_EN = "global_en"
    CN_ZH = "cn_zh"

    @property
    def endpoint(self) -> Endpoint:
        """Where it listens."""
        return Endpoint(scheme="https", host=_HOSTS[self.value], port=443)
