"""
The models that are known by name: data, not code.

A key is what programs and the command line use. A label is what saved workflows hold: it is matched
to the letter and never changes, even where it says "(recommended)".
"""

from __future__ import annotations

import attrs

from vlmcore._spelling import did_you_mean
from vlmcore.errors import ModelAccessError

__all__ = ["DEFAULT_MODEL", "MODELS", "ModelSpec", "find_model", "hint_for", "match_model"]


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

    @property
    def bf16_bytes(self) -> int:
        """`bf16_gib` in bytes."""
        return int(self.bf16_gib * (1 << 30))


MODELS: tuple[ModelSpec, ...] = (
    ModelSpec(
        key="qwen3.5-0.8b",
        label="Qwen 3.5 0.8B (fastest current)",
        repo_id="Qwen/Qwen3.5-0.8B",
        family="Qwen 3.5",
        bf16_gib=2.0,
        video=True,
        recommended=True,
        thinking=True,
    ),
    ModelSpec(
        key="qwen3.5-2b",
        label="Qwen 3.5 2B",
        repo_id="Qwen/Qwen3.5-2B",
        family="Qwen 3.5",
        bf16_gib=4.5,
        video=True,
        thinking=True,
    ),
    ModelSpec(
        key="qwen3.5-4b",
        label="Qwen 3.5 4B (recommended)",
        repo_id="Qwen/Qwen3.5-4B",
        family="Qwen 3.5",
        bf16_gib=8.5,
        video=True,
        recommended=True,
        thinking=True,
    ),
    ModelSpec(
        key="qwen3.5-9b",
        label="Qwen 3.5 9B",
        repo_id="Qwen/Qwen3.5-9B",
        family="Qwen 3.5",
        bf16_gib=19.0,
        video=True,
        thinking=True,
    ),
    ModelSpec(
        key="qwen3.5-27b",
        label="Qwen 3.5 27B (4-bit recommended)",
        repo_id="Qwen/Qwen3.5-27B",
        family="Qwen 3.5",
        bf16_gib=55.0,
        video=True,
        thinking=True,
    ),
    ModelSpec(
        key="qwen3.5-35b-a3b",
        label="Qwen 3.5 35B-A3B (4-bit recommended)",
        repo_id="Qwen/Qwen3.5-35B-A3B",
        family="Qwen 3.5",
        bf16_gib=72.0,
        video=True,
        thinking=True,
    ),
    ModelSpec(
        key="qwen3.6-27b",
        label="Qwen 3.6 27B (4-bit recommended)",
        repo_id="Qwen/Qwen3.6-27B",
        family="Qwen 3.6",
        bf16_gib=55.0,
        video=True,
        thinking=True,
    ),
    ModelSpec(
        key="qwen3-vl-2b",
        label="Qwen 3 VL 2B Instruct",
        repo_id="Qwen/Qwen3-VL-2B-Instruct",
        family="Qwen 3 VL",
        bf16_gib=5.0,
        video=True,
        recommended=True,
    ),
    ModelSpec(
        key="qwen3-vl-4b",
        label="Qwen 3 VL 4B Instruct",
        repo_id="Qwen/Qwen3-VL-4B-Instruct",
        family="Qwen 3 VL",
        bf16_gib=9.0,
        video=True,
        recommended=True,
    ),
    ModelSpec(
        key="qwen3-vl-8b",
        label="Qwen 3 VL 8B Instruct",
        repo_id="Qwen/Qwen3-VL-8B-Instruct",
        family="Qwen 3 VL",
        bf16_gib=18.0,
        video=True,
        recommended=True,
    ),
    ModelSpec(
        key="qwen3-vl-30b-a3b",
        label="Qwen 3 VL 30B-A3B Instruct (4-bit recommended)",
        repo_id="Qwen/Qwen3-VL-30B-A3B-Instruct",
        family="Qwen 3 VL",
        bf16_gib=61.0,
        video=True,
    ),
    ModelSpec(
        key="qwen2.5-vl-3b",
        label="Qwen 2.5 VL 3B Instruct (legacy workflows)",
        repo_id="Qwen/Qwen2.5-VL-3B-Instruct",
        family="Qwen 2.5 VL",
        bf16_gib=7.0,
        video=True,
    ),
    ModelSpec(
        key="qwen2.5-vl-7b",
        label="Qwen 2.5 VL 7B Instruct (legacy workflows)",
        repo_id="Qwen/Qwen2.5-VL-7B-Instruct",
        family="Qwen 2.5 VL",
        bf16_gib=16.0,
        video=True,
    ),
    ModelSpec(
        key="gemma3-4b",
        label="Gemma 3 4B IT (license acceptance required)",
        repo_id="google/gemma-3-4b-it",
        family="Gemma 3",
        bf16_gib=9.0,
        gated=True,
        recommended=True,
    ),
    ModelSpec(
        key="gemma3-12b",
        label="Gemma 3 12B IT (license acceptance required)",
        repo_id="google/gemma-3-12b-it",
        family="Gemma 3",
        bf16_gib=25.0,
        gated=True,
    ),
    ModelSpec(
        key="gemma3-27b",
        label="Gemma 3 27B IT (4-bit recommended, gated)",
        repo_id="google/gemma-3-27b-it",
        family="Gemma 3",
        bf16_gib=55.0,
        gated=True,
    ),
    ModelSpec(
        key="smolvlm2-256m",
        label="SmolVLM2 256M Video (smallest)",
        repo_id="HuggingFaceTB/SmolVLM2-256M-Video-Instruct",
        family="SmolVLM2",
        bf16_gib=1.4,
        video=True,
    ),
    ModelSpec(
        key="smolvlm2-500m",
        label="SmolVLM2 500M Video (low VRAM)",
        repo_id="HuggingFaceTB/SmolVLM2-500M-Video-Instruct",
        family="SmolVLM2",
        bf16_gib=1.8,
        video=True,
        recommended=True,
    ),
    ModelSpec(
        key="smolvlm2-2.2b",
        label="SmolVLM2 2.2B Video",
        repo_id="HuggingFaceTB/SmolVLM2-2.2B-Instruct",
        family="SmolVLM2",
        bf16_gib=5.2,
        video=True,
        recommended=True,
    ),
    ModelSpec(
        key="lfm2.5-vl-450m",
        label="LFM2.5 VL 450M (edge)",
        repo_id="LiquidAI/LFM2.5-VL-450M",
        family="LFM2.5 VL",
        bf16_gib=1.5,
        recommended=True,
    ),
    ModelSpec(
        key="lfm2.5-vl-1.6b",
        label="LFM2.5 VL 1.6B",
        repo_id="LiquidAI/LFM2.5-VL-1.6B",
        family="LFM2.5 VL",
        bf16_gib=4.0,
    ),
    ModelSpec(
        key="internvl3.5-1b",
        label="InternVL 3.5 1B HF",
        repo_id="OpenGVLab/InternVL3_5-1B-HF",
        family="InternVL 3.5",
        bf16_gib=2.5,
        video=True,
        recommended=True,
    ),
    ModelSpec(
        key="internvl3.5-2b",
        label="InternVL 3.5 2B HF",
        repo_id="OpenGVLab/InternVL3_5-2B-HF",
        family="InternVL 3.5",
        bf16_gib=5.0,
        video=True,
    ),
    ModelSpec(
        key="granite-vision-3.3-2b",
        label="Granite Vision 3.3 2B (documents/OCR)",
        repo_id="ibm-granite/granite-vision-3.3-2b",
        family="Granite Vision 3.3",
        bf16_gib=6.5,
    ),
    ModelSpec(
        key="granite-vision-4.1-4b",
        label="Granite Vision 4.1 4B (structured documents)",
        repo_id="ibm-granite/granite-vision-4.1-4b",
        family="Granite Vision 4.1",
        bf16_gib=9.0,
        recommended=True,
    ),
    ModelSpec(
        key="custom",
        label="Custom Hugging Face model",
        repo_id=None,
        family="Custom",
        bf16_gib=8.0,
        recommended=True,
    ),
)
"""Every model of the catalog, in the order of the lists that people choose from."""

DEFAULT_MODEL = "qwen3-vl-2b"
"""The key of the model that is taken where none is named."""

_BY_KEY = {spec.key: spec for spec in MODELS}
_BY_NAME = {spec.label: spec for spec in MODELS} | {
    spec.repo_id: spec for spec in MODELS if spec.repo_id is not None
}


def find_model(name: str) -> ModelSpec:
    """
    Find a model of the catalog by its key (in any case), its label or its hub id (to the letter).

    Raises:
        ModelAccessError: If there is none of that name; names close to it are given.

    Example:
        >>> find_model("qwen3-vl-4b").repo_id
        'Qwen/Qwen3-VL-4B-Instruct'
    """
    spec = match_model(name)
    if spec is None:
        raise ModelAccessError(
            name, f"the catalog has no such key, label or hub id{hint_for(name)}"
        )
    return spec


def match_model(name: str) -> ModelSpec | None:
    """Do as `find_model` does, but give ``None`` where there is no such model."""
    return _BY_NAME.get(name) or _BY_KEY.get(name.strip().lower())


def hint_for(name: str) -> str:
    """Say which keys are close to *name*: ``"; did you mean 'a' or 'b'?"``, or nothing."""
    spellings = {spec.key: spec.key for spec in MODELS} | {"embedded": "embedded"}
    for spec in MODELS:
        spellings[spec.label.lower()] = spec.key
        if spec.repo_id is not None:
            spellings[spec.repo_id.lower()] = spec.key
            spellings[spec.repo_id.lower().partition("/")[2]] = spec.key
    return did_you_mean(name, spellings)
