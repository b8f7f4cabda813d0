"""Graphs are read as ComfyUI exports them, and changed without a trace in the original."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from vlmcore.errors import GraphError
from vlmcore_comfy.catalog import load_catalog
from vlmcore_comfy.graphs import graph_from_json, with_inputs

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "comfyui").glob("*.json"))
GRAPH: dict[str, Any] = {
    "1": {"class_type": "SimpleText", "inputs": {"input_text": "a"}},
    "2": {"class_type": "ViewText", "inputs": {"text": ["1", 0]}},
    "3": {"class_type": "ViewText", "inputs": {"text": "b"}},
}


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_each_example_gives_each_node_what_it_wants(file: Path) -> None:
    """
    Every required input of our nodes, none that they do not know, and labels that can be chosen.
    """
    nodes = load_catalog().nodes
    graph = graph_from_json(file.read_text(encoding="utf-8"), name=file.name)
    ours = [each for each in graph.values() if each["class_type"] in nodes]
    assert ours
    for each in ours:
        node = nodes[each["class_type"]]
        given = set(each["inputs"])
        assert {each.name for each in node.inputs if not each.is_optional} <= given
        assert given <= {each.name for each in node.inputs}
        for declared in node.inputs:
            value = each["inputs"].get(declared.name)
            if declared.type == "COMBO" and value is not None and not isinstance(value, list):
                assert value in declared.options["options"]


@pytest.mark.parametrize("document", [GRAPH, {"prompt": GRAPH, "client_id": "x"}])
def test_a_graph_is_read(document: Any) -> None:
    """
    Alone, or as the body of the request that queues it.
    """
    assert graph_from_json(json.dumps(document)) == GRAPH


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "graph: is no JSON that can be read"),
        ("[1]", "graph: got [1], expected an object of nodes"),
        ("{}", "graph: got {}, expected an object of nodes"),
        ('{"1": 2}', "graph: node '1': got 2, expected a class_type and its inputs"),
        ('{"1": {"class_type": 3}}', "expected a class_type and its inputs"),
        ('{"1": {"class_type": "A", "inputs": []}}', "expected a class_type and its inputs"),
        ('{"nodes": [], "links": []}', "is a workflow with its layout; export it for the API"),
        ("[" * 100, "is no JSON that can be read"),
    ],
)
def test_what_is_no_graph_is_told(text: str, said: str) -> None:
    """
    A workflow that the page saved most of all.
    """
    with pytest.raises(GraphError, match=re.escape(said)):
        graph_from_json(text)


def test_a_node_without_inputs_has_none() -> None:
    """
    ComfyUI wants the key.
    """
    assert graph_from_json('{"1": {"class_type": "A"}}')["1"]["inputs"] == {}


def test_an_input_is_changed_by_id_or_by_the_only_node_of_a_class() -> None:
    """
    The graph that was given stays as it is.
    """
    changed = with_inputs(GRAPH, {"3.text": "c", "SimpleText.input_text": 1})
    assert changed["3"]["inputs"] == {"text": "c"}
    assert changed["1"]["inputs"] == {"input_text": 1}
    assert GRAPH["3"]["inputs"] == {"text": "b"}


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("ViewText.text", "2 nodes are of 'ViewText': 2, 3; name one"),
        ("9.text", "has no node '9'; it has 1 (SimpleText), 2 (ViewText)"),
        ("text", "got 'text', expected a node and its input"),
        ("3.", "got '3.', expected a node and its input"),
    ],
)
def test_a_place_that_is_not_there_is_told(place: str, said: str) -> None:
    """
    With what is there.
    """
    with pytest.raises(GraphError, match=re.escape(said)):
        with_inputs(GRAPH, {place: 1})
