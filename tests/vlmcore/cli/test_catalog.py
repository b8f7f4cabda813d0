"""``vlmcore catalog``: what is known by name, for people and for programs."""

import json

import pytest

from vlmcore.policy.catalog import POLICIES, Readiness
from vlmcore.vlm.catalog import MODELS
from vlmcore.vlm.detector_catalog import DETECTORS


def test_every_model_has_a_line_with_its_key_and_its_label(command) -> None:
    """
    The key is what is given to ``--model``; the label is what saved workflows hold.
    """
    done = command("catalog", "vlm")

    assert 0 == done.code
    for model in MODELS:
        (line,) = [line for line in done.out.splitlines() if line.split()[0] == model.key]
        assert line.endswith(model.label)
        assert f"{model.bf16_gib:.1f}" in line
        assert model.gated is ("gated" in line.split(model.label)[0])
        assert model.video is ("video" in line.split(model.label)[0])


@pytest.mark.parametrize(
    ("kind", "rows"), [("vlm", MODELS), ("vla", POLICIES), ("detectors", DETECTORS)]
)
def test_the_columns_are_aligned_and_fit_a_window(command, kind, rows) -> None:
    """
    No line is wider than a hundred characters, and every label begins in the same column.
    """
    lines = command("catalog", kind).out.splitlines()
    starts = {
        line.rindex(row.label) for row in rows for line in lines if line.startswith(f"  {row.key} ")
    }

    assert 1 == len(starts)
    assert max(map(len, lines)) <= 100


def test_json_has_every_field_of_every_model(command) -> None:
    """
    One array, in the order of the catalog.
    """
    found = json.loads(command("catalog", "vlm", "--json").out)

    assert [model.key for model in MODELS] == [each["key"] for each in found]
    assert {"key", "label", "repo_id", "family", "bf16_gib", "gated", "video"} < set(found[0])


def test_every_policy_stands_under_what_its_readiness_means(command) -> None:
    """
    The key and the label on one line; the weights and what runs them on the next.
    """
    done = command("catalog", "vla")
    lines = done.out.splitlines()
    headings = {lines.index(f"{each.value}: {each.advice}"): each for each in Readiness}

    assert 0 == done.code
    for spec in POLICIES:
        (at,) = [i for i, line in enumerate(lines) if line.split()[0] == spec.key]
        assert spec.readiness is headings[max(i for i in headings if i < at)]
        assert lines[at].endswith(spec.label)
        assert (spec.checkpoint or "no weights") in lines[at + 1]
        for word in (*(runtime.value for runtime in spec.runtimes), *spec.fine_tuned_for):
            assert word in lines[at + 1]


def test_json_has_every_field_of_every_policy(command) -> None:
    """
    One array, in the order of the catalog, in the words that workflows use.
    """
    found = json.loads(command("catalog", "vla", "--json").out)

    assert [spec.key for spec in POLICIES] == [each["key"] for each in found]
    assert {
        "key": "eo-1",
        "label": "EO-1 — efficient VLA architecture",
        "family": "EO-1",
        "policy_type": "eo1",
        "checkpoint": None,
        "runtimes": ["lerobot-http"],
        "scale": "3B VLM class",
        "readiness": "architecture-only",
        "fine_tuned_for": [],
        "url": "https://huggingface.co/docs/lerobot/eo1",
    } == next(each for each in found if each["key"] == "eo-1")
