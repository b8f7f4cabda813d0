"""
The models of open-vocabulary detection that are known by name: data, not code.

Keys and labels are what they are in `vlmcore.vlm.catalog`.
"""

from __future__ import annotations

from vlmcore.vlm.catalog import ModelSpec

__all__ = ["DEFAULT_DETECTOR", "DETECTORS", "match_detector"]

DEFAULT_DETECTOR = "grounding-dino-tiny"
"""The key of the detector that is taken where none is named."""

DETECTORS: tuple[ModelSpec, ...] = (
    ModelSpec(
        key="grounding-dino-tiny",
        label="Grounding DINO Tiny (fast)",
        repo_id="IDEA-Research/grounding-dino-tiny",
        family="Grounding DINO",
        bf16_gib=1.0,
        recommended=True,
    ),
    ModelSpec(
        key="grounding-dino-base",
        label="Grounding DINO Base",
        repo_id="IDEA-Research/grounding-dino-base",
        family="Grounding DINO",
        bf16_gib=1.5,
    ),
    ModelSpec(
        key="owlv2-base-ensemble",
        label="OWLv2 Base Ensemble",
        repo_id="google/owlv2-base-patch16-ensemble",
        family="OWLv2",
        bf16_gib=1.0,
    ),
    ModelSpec(
        key="omdet-turbo-swin-tiny",
        label="OmDet Turbo Swin Tiny (fast)",
        repo_id="omlab/omdet-turbo-swin-tiny-hf",
        family="OmDet-Turbo",
        bf16_gib=0.8,
    ),
)

_BY_NAME = {name: spec for spec in DETECTORS for name in (spec.label, spec.repo_id)}
_BY_KEY = {spec.key: spec for spec in DETECTORS}


def match_detector(name: str) -> ModelSpec | None:
    """
    Find a detector by its key (in any case), its label or its hub id; ``None`` if there is none.

    Example:
        >>> match_detector("OWLv2 Base Ensemble").key
        'owlv2-base-ensemble'
    """
    return _BY_NAME.get(name) or _BY_KEY.get(name.strip().lower())
