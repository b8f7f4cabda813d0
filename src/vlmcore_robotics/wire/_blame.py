"""Whose fault it is that an answer cannot be used, told without the token that was sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import attrs

from vlmcore._copying import thawed
from vlmcore.contracts.actions import ActionChunk
from vlmcore.errors import ContractError, PolicyError, PolicyProtocolError, PolicyRefusedError
from vlmcore.limits import DocumentLimits
from vlmcore.secrets import REDACTED, Secret, last_words, redact

__all__ = ["blamed", "chunk_without", "without", "words_of"]

_Read = TypeVar("_Read")


def blamed(policy: str, token: Secret | None, read: Callable[[], _Read]) -> _Read:
    """
    Turn what is wrong with an answer into whose fault it is; no error shows the token.

    Args:
        policy: What the policy is called in errors.
        token: The token that was sent: a peer may repeat it.
        read: Reads the answer.

    Raises:
        PolicyRefusedError: If *read* does.
        PolicyProtocolError: If *read* raises a `ContractError`.
    """
    raised: PolicyError
    try:
        return read()
    except PolicyRefusedError as error:
        raised, cause = PolicyRefusedError(policy, redact(error.problem, token)), None
    except ContractError as error:
        raised = PolicyProtocolError(policy, redact(str(error), token), "theirs")
        cause = error if token is None else None
    raise raised from cause  # out here, so that its context does not show what was taken out


def words_of(error: Any, token: Secret | None) -> str:
    """Take the words of an error, of a traceback the last, cut, on one line, without the token."""
    most = DocumentLimits().max_error_characters
    text = error if isinstance(error, str) else f"an error that is no text: {error!r:.200}"
    return redact(last_words(text), token, max_characters=most) or "an error without words"


def chunk_without(chunk: ActionChunk, token: Secret | None) -> ActionChunk:
    """Take the token out of what a server says beside its actions, should it repeat it."""
    if token is None or not chunk.metadata:
        return chunk
    return attrs.evolve(chunk, metadata=without(thawed(chunk.metadata), token))


def without(value: Any, token: Secret | None) -> Any:
    """Take the token out of all texts in *value*, lists and maps within it included."""
    if token is None:
        return value
    if isinstance(value, dict):
        return {without(key, token): without(each, token) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [without(each, token) for each in value]
    if not isinstance(value, str):
        return value
    shown = redact(value, token)
    return shown if REDACTED in shown else value
