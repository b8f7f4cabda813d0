"""
The JSON documents of embodiments, observations and actions, both ways.

Reading is strict: a document is taken as a whole or refused with all its faults, each with its
place. What is written is read back exactly. The functions with ``document`` in their name work on
plain values, the ones with ``json`` on text.
"""

from __future__ import annotations

from vlmcore.contracts._action_documents import (
    action_chunk_from_document,
    action_chunk_to_document,
    action_step_from_document,
    action_step_to_document,
)
from vlmcore.contracts._embodiment_document import (
    embodiment_from_document,
    embodiment_to_document,
)
from vlmcore.contracts._observation_document import (
    observation_summary_from_document,
    observation_summary_to_document,
)
from vlmcore.contracts.actions import ActionChunk, ActionStep
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.json_text import read_json, write_json
from vlmcore.contracts.observation import ObservationSummary
from vlmcore.limits import DocumentLimits

__all__ = [
    "action_chunk_from_document",
    "action_chunk_from_json",
    "action_chunk_to_document",
    "action_chunk_to_json",
    "action_step_from_document",
    "action_step_from_json",
    "action_step_to_document",
    "action_step_to_json",
    "embodiment_from_document",
    "embodiment_from_json",
    "embodiment_to_document",
    "embodiment_to_json",
    "observation_summary_from_document",
    "observation_summary_from_json",
    "observation_summary_to_document",
    "observation_summary_to_json",
]


def embodiment_from_json(text: str | bytes, *, limits: DocumentLimits | None = None) -> Embodiment:
    """
    Read an embodiment.

    Raises:
        DocumentError: If the document has faults; all of them are listed.
        ContractError: If *text* is not JSON.
        LimitExceededError: If it is larger than *limits* allow.

    Example:
        >>> from vlmcore.contracts.presets import find_embodiment
        >>> aloha = find_embodiment("ALOHA bimanual template")
        >>> embodiment_from_json(embodiment_to_json(aloha)) == aloha
        True
    """
    return embodiment_from_document(read_json(text, limits=limits))


def embodiment_to_json(embodiment: Embodiment) -> str:
    """Write an embodiment, with the keys of old wherever they can say it."""
    return write_json(embodiment_to_document(embodiment))


def observation_summary_from_json(
    text: str | bytes, *, limits: DocumentLimits | None = None
) -> ObservationSummary:
    """
    Read the summary of an observation.

    Raises:
        DocumentError: If the document has faults; all of them are listed.
        ContractError: If *text* is not JSON.
        LimitExceededError: If it is larger than *limits* allow.
    """
    return observation_summary_from_document(read_json(text, limits=limits))


def observation_summary_to_json(summary: ObservationSummary) -> str:
    """Write the summary of an observation."""
    return write_json(observation_summary_to_document(summary))


def action_chunk_from_json(
    text: str | bytes,
    *,
    observed_at_s: float | None = None,
    limits: DocumentLimits | None = None,
) -> ActionChunk:
    """
    Read an action chunk.

    Args:
        text: The document.
        observed_at_s: When the policy saw what it acts on, on the caller's own monotonic clock; it
            goes before what the document says.
        limits: How much is read.

    Raises:
        DocumentError: If the document has faults; all of them are listed.
        ContractError: If *text* is not JSON.
        LimitExceededError: If it is larger than *limits* allow.
    """
    value = read_json(text, limits=limits)
    return action_chunk_from_document(value, observed_at_s=observed_at_s)


def action_chunk_to_json(chunk: ActionChunk, *, indent: int | None = None) -> str:
    """
    Write an action chunk.

    Raises:
        ContractError: If there is NaN or infinity in it: the safety gate comes first.
    """
    return write_json(action_chunk_to_document(chunk), indent=indent)


def action_step_from_json(text: str | bytes, *, limits: DocumentLimits | None = None) -> ActionStep:
    """
    Read one step.

    Raises:
        DocumentError: If the document has faults; all of them are listed.
        ContractError: If *text* is not JSON.
        LimitExceededError: If it is larger than *limits* allow.
    """
    return action_step_from_document(read_json(text, limits=limits))


def action_step_to_json(step: ActionStep) -> str:
    """Write one step."""
    return write_json(action_step_to_document(step))
