"""
The models that are known by name: data, not code.

A key is what programs and the command line use. A label is what saved workflows hold: it is matched
to the letter and never changes, even where it says "(recommended)".
"""

from __future__ import annotations

import difflib

import attrs

from vlmcore.errors import ModelAccessError

__all__ = ["DEFAULT_MODEL", "MODELS", "ModelSpec", "find_model", "near_names"]


@attrs.frozen(kw_only=True)
class ModelSpec:
    """
    One model of the catalog.

    Attributes:
        key: Its short name, lower case.
        label: Its name in saved workflows.
        repo_id: Its repository on the hub; ``None`` for the entry that stands for any other model.
        family: The family that it belongs to.
        bf16_gib: Estimate of its memory with 16-bit weights while it generates, in GiB.
        gated: Whether its licence has to be accepted on the hub first.
        video: Whether the model was trained on video.
        recommended: Whether it is a good choice of its size.
        thinking: Whether it can be asked to think first, or not to.
    """

    key: str
    label: str
    repo_id: str | None
    family: str
    bf16_gib: float
    gated: bool = False
    video: bool = False
    recommended: bool = False
    thinking: bool = False


def _qwen3_5(key: str, label: str, gib: float, *, recommended: bool = False) -> ModelSpec:
    return ModelSpec(
        key=key,
        label=label,
        repo_id=f"Qwen/{_size_of(label, 3)}",
        family=" ".join(label.split()[:2]),
        bf16_gib=gib,
        video=True,
        recommended=recommended,
        thinking=True,
    )
