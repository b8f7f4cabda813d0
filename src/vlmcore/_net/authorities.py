"""Authorities of one's own: who may say whom a certificate is of, where browsers know them not."""

from __future__ import annotations

import ssl
from pathlib import Path

from vlmcore.errors import ContractError

__all__ = ["trusting"]


def trusting(file: Path | str) -> ssl.SSLContext:
    """
    Trust the authorities in *file* and nobody else; names are compared as ever.

    Args:
        file: Their certificates, in PEM.

    Raises:
        ContractError: If it is no such file; its field is ``ca``.
    """
    path, why = Path(file), ""
    try:
        if not path.is_file():  # what is none, as a pipe, may never end
            why = "there is none"
        else:
            return ssl.create_default_context(cafile=path)
    except (OSError, ValueError) as error:  # SSLError is an OSError
        why = "there is none in it" if isinstance(error, ssl.SSLError) else str(error)
    raise ContractError("ca", f"got {path.name[:80]!a}, expected certificates in PEM: {why}")
