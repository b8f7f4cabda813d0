"""What a predictor over a server is."""

from __future__ import annotations

from vlmcore.vlm.predictor import PredictorInfo
from vlmcore.vlm.remote._terms import Terms

__all__ = ["describe"]

_UNTOLD = "not told by the server"


def describe(terms: Terms) -> PredictorInfo:
    """Say what is known of a model behind a server."""
    server = terms.server
    return PredictorInfo(
        model=terms.model,
        source=f"{server.endpoint.origin}{server.base}",
        backend=f"a server, asked at {terms.codec.path.lstrip('/')}",
        device="a server",
        dtype=_UNTOLD,
        memory=_UNTOLD,
        attention=_UNTOLD,
        supports_video=False,
    )
