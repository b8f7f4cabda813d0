"""Base addresses of servers, joined once, and the models that are named with them."""

from __future__ import annotations

import re

from vlmcore.endpoint import Endpoint
from vlmcore.errors import ContractError

__all__ = ["base_path", "parse_base", "split_model"]

_ENDS = ("/chat/completions", "/responses", "/messages", "/models")
_VERSION = re.compile(r"v[0-9][a-z0-9]*")


def split_model(text: str) -> tuple[str, str]:
    """
    Split ``URL#model``; the model is empty if none is named.

    Example:
        >>> split_model("http://127.0.0.1:8000/v1#org/model")
        ('http://127.0.0.1:8000/v1', 'org/model')
    """
    url, _, model = text.partition("#")
    return url, model


def parse_base(text: object) -> Endpoint:
    """
    Read the base address of a server of one's own: http or https on this machine, https elsewhere.

    Raises:
        EndpointError: If it is no such address.
        ContractError: If it is no text.
    """
    if not isinstance(text, str):
        raise ContractError("base_url", f"got {type(text).__name__}, expected text")
    return Endpoint.parse(text, schemes=("http", "https"), allow_remote=True)


def base_path(endpoint: Endpoint) -> str:
    """
    Say what stands before the paths of requests, with or without it in the address.

    A path without a version gets ``/v1``, which all servers have.

    Example:
        >>> [base_path(parse_base(f"http://localhost:1{path}")) for path in ("", "/v1/", "/a")]
        ['/v1', '/v1', '/a/v1']
    """
    path = endpoint.path.rstrip("/")
    for end in _ENDS:
        path = path.removesuffix(end)
    if any(_VERSION.fullmatch(segment) for segment in path.split("/")):
        return path
    return f"{path}/v1"
