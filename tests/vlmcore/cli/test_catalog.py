"""``vlmcore catalog vlm``: every model that is known by name, for people and for programs."""

import json

from vlmcore.vlm.catalog import MODELS


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


def test_the_columns_are_aligned_and_fit_a_window(command) -> None:
    """
    No line is wider than a hundred characters, and every label begins in the same column.
    """
    lines = command("catalog", "vlm").out.splitlines()
    starts = {
        line.rindex(model.label)
        for model in MODELS
        for line in lines
        if line.startswith(f"  {model.key} ")
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
