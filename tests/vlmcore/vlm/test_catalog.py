"""The catalog: its rows are data that workflows rely on, so each is pinned here."""

from __future__ import annotations

import re

import pytest

from vlmcore.errors import ModelAccessError
from vlmcore.vlm.catalog import DEFAULT_MODEL, MODELS, find_model

# key, label, hub id, family, GiB in 16 bits; flags: g(ated) v(ideo) r(ecommended) t(hinking)
ROWS = [
    (
        "qwen3.5-0.8b",
        "Qwen 3.5 0.8B (fastest current)",
        "Qwen/Qwen3.5-0.8B",
        "Qwen 3.5",
        2.0,
        "vrt",
    ),
    ("qwen3.5-2b", "Qwen 3.5 2B", "Qwen/Qwen3.5-2B", "Qwen 3.5", 4.5, "vt"),
    ("qwen3.5-4b", "Qwen 3.5 4B (recommended)", "Qwen/Qwen3.5-4B", "Qwen 3.5", 8.5, "vrt"),
    ("qwen3.5-9b", "Qwen 3.5 9B", "Qwen/Qwen3.5-9B", "Qwen 3.5", 19.0, "vt"),
    ("qwen3.5-27b", "Qwen 3.5 27B (4-bit recommended)", "Qwen/Qwen3.5-27B", "Qwen 3.5", 55.0, "vt"),
    (
        "qwen3.5-35b-a3b",
        "Qwen 3.5 35B-A3B (4-bit recommended)",
        "Qwen/Qwen3.5-35B-A3B",
        "Qwen 3.5",
        72.0,
        "vt",
    ),
    ("qwen3.6-27b", "Qwen 3.6 27B (4-bit recommended)", "Qwen/Qwen3.6-27B", "Qwen 3.6", 55.0, "vt"),
    ("qwen3-vl-2b", "Qwen 3 VL 2B Instruct", "Qwen/Qwen3-VL-2B-Instruct", "Qwen 3 VL", 5.0, "vr"),
    ("qwen3-vl-4b", "Qwen 3 VL 4B Instruct", "Qwen/Qwen3-VL-4B-Instruct", "Qwen 3 VL", 9.0, "vr"),
    ("qwen3-vl-8b", "Qwen 3 VL 8B Instruct", "Qwen/Qwen3-VL-8B-Instruct", "Qwen 3 VL", 18.0, "vr"),
    (
        "qwen3-vl-30b-a3b",
        "Qwen 3 VL 30B-A3B Instruct (4-bit recommended)",
        "Qwen/Qwen3-VL-30B-A3B-Instruct",
        "Qwen 3 VL",
        61.0,
        "v",
    ),
    (
        "qwen2.5-vl-3b",
        "Qwen 2.5 VL 3B Instruct (legacy workflows)",
        "Qwen/Qwen2.5-VL-3B-Instruct",
        "Qwen 2.5 VL",
        7.0,
        "v",
    ),
    (
        "qwen2.5-vl-7b",
        "Qwen 2.5 VL 7B Instruct (legacy workflows)",
        "Qwen/Qwen2.5-VL-7B-Instruct",
        "Qwen 2.5 VL",
        16.0,
        "v",
    ),
    (
        "gemma3-4b",
        "Gemma 3 4B IT (license acceptance required)",
        "google/gemma-3-4b-it",
        "Gemma 3",
        9.0,
        "gr",
    ),
    (
        "gemma3-12b",
        "Gemma 3 12B IT (license acceptance required)",
        "google/gemma-3-12b-it",
        "Gemma 3",
        25.0,
        "g",
    ),
    (
        "gemma3-27b",
        "Gemma 3 27B IT (4-bit recommended, gated)",
        "google/gemma-3-27b-it",
        "Gemma 3",
        55.0,
        "g",
    ),
    (
        "smolvlm2-256m",
        "SmolVLM2 256M Video (smallest)",
        "HuggingFaceTB/SmolVLM2-256M-Video-Instruct",
        "SmolVLM2",
        1.4,
        "v",
    ),
    (
        "smolvlm2-500m",
        "SmolVLM2 500M Video (low VRAM)",
        "HuggingFaceTB/SmolVLM2-500M-Video-Instruct",
        "SmolVLM2",
        1.8,
        "vr",
    ),
    (
        "smolvlm2-2.2b",
        "SmolVLM2 2.2B Video",
        "HuggingFaceTB/SmolVLM2-2.2B-Instruct",
        "SmolVLM2",
        5.2,
        "vr",
    ),
    ("lfm2.5-vl-450m", "LFM2.5 VL 450M (edge)", "LiquidAI/LFM2.5-VL-450M", "LFM2.5 VL", 1.5, "r"),
    ("lfm2.5-vl-1.6b", "LFM2.5 VL 1.6B", "LiquidAI/LFM2.5-VL-1.6B", "LFM2.5 VL", 4.0, ""),
    (
        "internvl3.5-1b",
        "InternVL 3.5 1B HF",
        "OpenGVLab/InternVL3_5-1B-HF",
        "InternVL 3.5",
        2.5,
        "vr",
    ),
    (
        "internvl3.5-2b",
        "InternVL 3.5 2B HF",
        "OpenGVLab/InternVL3_5-2B-HF",
        "InternVL 3.5",
        5.0,
        "v",
    ),
    (
        "granite-vision-3.3-2b",
        "Granite Vision 3.3 2B (documents/OCR)",
        "ibm-granite/granite-vision-3.3-2b",
        "Granite Vision 3.3",
        6.5,
        "",
    ),
    (
        "granite-vision-4.1-4b",
        "Granite Vision 4.1 4B (structured documents)",
        "ibm-granite/granite-vision-4.1-4b",
        "Granite Vision 4.1",
        9.0,
        "r",
    ),
    ("custom", "Custom Hugging Face model", None, "Custom", 8.0, "r"),
]


def test_every_row_is_as_workflows_and_scripts_know_it() -> None:
    """
    A changed label breaks a saved workflow, a changed key a script, a changed hub id both.
    """
    flags = (("g", "gated"), ("v", "video"), ("r", "recommended"), ("t", "thinking"))

    rows = [
        (
            spec.key,
            spec.label,
            spec.repo_id,
            spec.family,
            spec.bf16_gib,
            "".join(letter for letter, field in flags if getattr(spec, field)),
        )
        for spec in MODELS
    ]

    assert ROWS == rows


def test_no_two_models_share_a_name() -> None:
    """
    A key, a label or a hub id names one model, also when the case of letters is ignored.
    """
    names = [
        name.lower()
        for spec in MODELS
        for name in (spec.key, spec.label, spec.repo_id)
        if name is not None
    ]

    assert len(names) == len(set(names))


def test_keys_can_be_typed_without_quotes() -> None:
    """
    A key is lower case and holds nothing that a shell would read otherwise.
    """
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9.-]*", spec.key) for spec in MODELS)


def test_the_default_model_is_in_the_catalog() -> None:
    """
    The default is the one that the node's list has always started with.
    """
    assert "Qwen 3 VL 2B Instruct" == find_model(DEFAULT_MODEL).label


@pytest.mark.parametrize("spec", MODELS, ids=lambda spec: spec.key)
def test_a_model_is_found_by_key_in_any_case_by_label_and_by_hub_id(spec) -> None:
    """
    Each of its names finds a model.
    """
    assert spec is find_model(spec.key)
    assert spec is find_model(spec.key.upper())
    assert spec is find_model(spec.label)
    if spec.repo_id is not None:
        assert spec is find_model(spec.repo_id)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("qwen3-vl-4", "'qwen3-vl-4b'"),
        ("Qwen3-VL-4B-instruct", "'qwen3-vl-4b'"),
        ("Qwen 3 VL 2B", "'qwen3-vl-2b'"),
        ("qwen/qwen3-vl-4b-instruct", "'qwen3-vl-4b'"),
        ("embeded", "'embedded'"),
    ],
)
def test_a_name_that_is_nearly_right_is_answered_with_the_right_one(typed, meant) -> None:
    """
    A typing mistake is answered with what was probably meant.
    """
    with pytest.raises(ModelAccessError) as error:
        find_model(typed)

    assert typed == error.value.model
    assert "did you mean" in str(error.value)
    assert meant in str(error.value)


def test_a_name_like_no_other_is_answered_without_guesses() -> None:
    """
    Nothing is suggested where nothing is close.
    """
    with pytest.raises(ModelAccessError) as error:
        find_model("zzz")

    assert "zzz: the catalog has no such key, label or hub id" == str(error.value)
