"""``vlmcore comfy``: what a person at a shell is told, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from comfyui.scripted import PROMPT_ID, message, scripted
from vlmcore.cli import main

GRAPH = {
    "1": {"class_type": "SimpleText", "inputs": {"input_text": "a"}},
    "2": {"class_type": "ViewText", "inputs": {"text": ["1", 0]}},
}
MADE = message(
    "executed",
    node="2",
    output={"text": ["a\x1b[2Jb"], "images": [{"filename": "../x.png", "type": "output"}]},
)
END = message("execution_success")


@pytest.fixture
def graph(tmp_path: Path) -> str:
    file = tmp_path / "graph.json"
    file.write_text(json.dumps(GRAPH))
    return str(file)


def command(*words: str) -> int:
    try:
        return int(main(["comfy", *words]))
    except SystemExit as end:
        return int(end.code or 0)


def test_what_a_graph_shows_is_printed(graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Node by node; what a model wrote cannot control the terminal.
    """
    with scripted(message("execution_start"), MADE, END) as server:
        assert command("run", graph, "--url", server.url) == 0
    told = capsys.readouterr()
    assert told.out == "==> 2 ViewText <==\na\\x1b[2Jb\noutput/../x.png\n"
    assert told.err == ""


def test_files_are_fetched_into_the_folder_and_nowhere_else(
    graph: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    A server gives them their names.
    """
    folder = tmp_path / "made"
    with scripted(MADE, END, files={"../x.png": b"picture"}) as server:
        words = ("run", graph, "--url", server.url, "--save", str(folder), "--json")
        assert command(*words) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["prompt_id"] == PROMPT_ID
    assert document["files"] == [str(folder / "_x.png")]
    assert document["outputs"]["2"]["text"] == ["a\x1b[2Jb"]
    assert (folder / "_x.png").read_bytes() == b"picture"
    assert [each.name for each in tmp_path.rglob("*.png")] == ["_x.png"]


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("b", "b"),
        ("3", 3),
        ('"3"', "3"),
        ("[1", "[1"),
        ("", ""),
        ("a=b", "a=b"),
        ("NaN", "NaN"),
    ],
)
def test_an_input_is_set(graph: str, said: str, value: Any) -> None:
    """
    To JSON where it is that, and to text otherwise.
    """
    with scripted(END) as server:
        assert command("run", graph, "--url", server.url, "--set", f"1.input_text={said}") == 0
        ((_, sent),) = server.asked
    assert sent["prompt"]["1"]["inputs"]["input_text"] == value


def test_an_input_that_the_graph_did_not_have_is_told(
    graph: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    ComfyUI says nothing of one that the node does not have, as a slip of the pen makes it.
    """
    with scripted(END) as server:
        assert command("run", graph, "--url", server.url, "--set", "1.input_txet=a") == 0
    assert "1.input_txet is new to the graph" in capsys.readouterr().err


def test_a_graph_that_fails_ends_with_one(graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    """
    And says why, at which node.
    """
    failed = message("execution_error", node_id="2", exception_message="no")
    with scripted(failed) as server:
        assert command("run", graph, "--url", server.url) == 1
    assert capsys.readouterr().err == "vlmcore: node 2 (ViewText): no\n"


def test_a_graph_that_is_refused_is_told_line_by_line(
    graph: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    A line for each node.
    """
    errors = {"errors": [{"message": "Value not in list", "details": "x"}]}
    refusal = {"error": {"message": "invalid"}, "node_errors": {"1": errors, "2": errors}}
    with scripted(refusal=refusal) as server:
        assert command("run", graph, "--url", server.url) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].endswith("does not take the graph: invalid")
    assert lines[1:] == [
        "  node 1 (SimpleText): Value not in list: x",
        "  node 2 (ViewText): Value not in list: x",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--set", "text"), "--set: got 'text', expected NODE.INPUT=VALUE"),
        (("--set", "9.text=a"), "--set: "),
        (("--timeout", "0"), "--timeout: got 0"),
        (("--url", "http://example.com"), "--url: http://example.com"),
    ],
)
def test_a_wrong_command_line_ends_with_two(
    graph: str, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Nothing was asked.
    """
    assert command("run", graph, *words) == 2
    assert said in capsys.readouterr().err


def test_what_is_no_graph_ends_with_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    A workflow with its layout most of all.
    """
    (tmp_path / "flow.json").write_text('{"nodes": []}')
    assert command("run", str(tmp_path / "flow.json")) == 1
    assert "export it for the API" in capsys.readouterr().err
    assert command("run", str(tmp_path / "nowhere.json")) == 1
    assert "nowhere.json: does not exist" in capsys.readouterr().err


def test_the_pack_is_written_told_and_taken_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Each time it is said what was done.
    """
    (tmp_path / "custom_nodes").mkdir()
    for word, said in (
        ("install", "written; restart ComfyUI, with "),
        ("install", "is there already; nothing was written"),
        ("uninstall", "removed; restart ComfyUI"),
        ("uninstall", "is not there"),
    ):
        assert command(word, str(tmp_path)) == 0
        assert said in capsys.readouterr().out
    assert command("install", str(tmp_path / "no")) == 1
    assert "does not exist, expected the folder of a ComfyUI" in capsys.readouterr().err
