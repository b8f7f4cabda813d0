"""Saved workflows run unchanged: names, order, labels, defaults and ranges are held to files."""

from __future__ import annotations

import inspect
import json
from itertools import zip_longest
from typing import Any

import pytest

from comfy_cases import GOLDEN, SAVED, interface
from vlmcore_comfy.catalog import load_catalog

NODES = load_catalog().nodes

# Written by the person who declares the node, in full; the facts give a count, or leave it open.
_OURS_TO_WRITE = ("15 labels", "19 labels", "37 labels", "(yours to write)")


def test_every_theme_can_be_read() -> None:
    """
    Nothing is left out of the catalogue on an installation that is whole.
    """
    assert () == load_catalog().broken


@pytest.mark.parametrize("node_id", sorted(NODES))
def test_an_interface_is_as_its_golden_file_has_it(node_id: str) -> None:
    """
    A workflow binds widgets by their place, so that a change here is one of a file format.

    ``python tests/comfyui/write_interfaces.py`` writes the files; look at the difference.
    """
    golden = json.loads((GOLDEN / f"{node_id}.json").read_text(encoding="utf-8"))
    ours = interface(NODES[node_id])
    assert golden == ours
    assert json.dumps(golden) == json.dumps(ours), "the order differs"


def test_no_golden_file_is_left_over() -> None:
    """
    A node that is taken away takes its file with it.
    """
    files = {file.stem for file in GOLDEN.glob("*.json")} - {"saved-interfaces"}
    assert files == set(NODES)


@pytest.mark.parametrize("node_id", sorted(SAVED))
def test_what_workflows_saved_is_there(node_id: str) -> None:
    """
    Each saved interface is kept to the letter; what is new is optional and comes last.
    """
    saved, ours = SAVED[node_id], interface(NODES[node_id])
    assert saved["display_name"] == ours["display_name"]
    assert saved["category"] == ours["category"]
    assert (
        saved["outputs"]
        == [_without_lists(each) for each in ours["outputs"]][: len(saved["outputs"])]
    )
    for kind in ("required", "hidden"):
        _check_inputs(saved["inputs"].get(kind, {}), ours["inputs"].get(kind, {}), may_grow=False)
    _check_inputs(
        saved["inputs"].get("optional", {}), ours["inputs"].get("optional", {}), may_grow=True
    )


def _check_inputs(saved: dict[str, Any], ours: dict[str, Any], *, may_grow: bool) -> None:
    names = list(ours)[: len(saved)] if may_grow else list(ours)
    assert list(saved) == names
    for name in names:
        expected = {
            key: value
            for key, value in saved[name].items()
            if (key, value) != ("multiline", False) and value not in _OURS_TO_WRITE
        }
        present = {key: ours[name][key] for key in ours[name] if key in expected}
        if "options" in present:  # new labels come last
            present["options"] = present["options"][: len(expected["options"])]
        assert expected == present
        assert set(ours[name]) - set(expected) <= {"options", "default"}, name


def _without_lists(output: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in output.items() if key != "is_list"}


@pytest.mark.parametrize("node_id", sorted(NODES))
def test_a_function_takes_what_its_node_declares(node_id: str) -> None:
    """
    Required inputs have no default in the function and optional ones have: graphs leave them out.
    """
    node = NODES[node_id]
    parameters = dict(inspect.signature(node.run).parameters)
    parameters.pop("comfyui", None)
    assert list(parameters) == [each.name for each in node.inputs]
    for parameter, declared in zip_longest(parameters.values(), node.inputs):
        has_default = parameter.default is not inspect.Parameter.empty
        assert has_default is declared.is_optional, declared.name
