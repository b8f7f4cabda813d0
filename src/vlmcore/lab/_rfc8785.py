"""The door of rfc8785: one spelling for each JSON value, as RFC 8785 says."""

from __future__ import annotations

from vlmcore._optional import optional_dependency

with optional_dependency("lab", "rfc8785"):
    from rfc8785 import IntegerDomainError as BeyondExactError
    from rfc8785 import dumps

__all__ = ["BeyondExactError", "dumps"]
