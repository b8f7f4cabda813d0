"""What a server tells of itself, read from its answers without trusting them."""

from __future__ import annotations

from typing import Any

from vlmcore.lab.redacting import address_without_secrets
from vlmcore.lab.targets import Server
from vlmcore.limits import ArtifactLimits
from vlmcore.secrets import Secret, redact, without_secrets

__all__ = ["server_of"]

_LIMITS = ArtifactLimits()


def server_of(
    address: str,
    *,
    version: Any = None,
    models: Any = None,
    metrics: str | None = None,
    secrets: tuple[Secret | None, ...] = (),
) -> Server:
    """
    Read what a server told.

    Args:
        address: The address it was asked at; only scheme, host, port and path are kept.
        version: Its answer at ``/version``, JSON that was read; ``None`` if it gave none.
        models: Its answer at ``/v1/models``, the same.
        metrics: Its answer at ``/metrics``, as text; what is too long is cut.
        secrets: Tokens in reach of it.

    Returns:
        What is known of it; an answer that cannot be understood is no answer.

    Example:
        >>> server_of(
        ...     "http://me:secret@host:30000/v1?key=x",
        ...     version={"version": "0.5.10"},
        ...     models={"data": [{"id": "Qwen/Qwen3-VL-2B-Instruct"}]},
        ... ).models
        ('Qwen/Qwen3-VL-2B-Instruct',)
    """
    kept = None if not isinstance(metrics, str) else _encodable(metrics)
    return Server(
        address=address_without_secrets(address, *secrets),
        version=_version(version, secrets),
        models=_models(models, secrets),
        metrics=kept and without_secrets(kept[: _LIMITS.max_told_characters], *secrets),
    )


def _version(answer: Any, secrets: tuple[Secret | None, ...]) -> str | None:
    said = answer.get("version") if isinstance(answer, dict) else answer
    return _line(said, secrets)


def _models(answer: Any, secrets: tuple[Secret | None, ...]) -> tuple[str, ...] | None:
    listed = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(listed, list):
        return None
    ids = (each.get("id") for each in listed[: _LIMITS.max_files] if isinstance(each, dict))
    return tuple(line for line in (_line(each, secrets) for each in ids) if line is not None)


def _line(said: Any, secrets: tuple[Secret | None, ...]) -> str | None:
    if not isinstance(said, str):
        return None
    text = redact(_encodable(said), *secrets, max_characters=_LIMITS.max_name_characters)
    return text or None


def _encodable(text: str) -> str:
    """Replace halves of surrogates, which JSON can spell and UTF-8 cannot."""
    return text.encode(errors="replace").decode()
