"""A graph is followed to its end; what ComfyUI has against it, and what fails, is told by node."""

from __future__ import annotations

import json
import socket
import threading
from typing import Any

import pytest

from comfyui.scripted import HANG_UP, PROMPT_ID, WAIT, message, scripted, text_of
from vlmcore.errors import (
    EndpointError,
    GraphFailedError,
    GraphRefusedError,
    GraphServerError,
    GraphStoppedError,
)
from vlmcore_comfy.graphs import Graph
from vlmcore_comfy.queueing import (
    ComfyServer,
    MadeFile,
    NodeMade,
    NodeProgress,
    NodeRuns,
    NodesCached,
    NodeText,
    Queued,
)

GRAPH: Graph = {
    "1": {"class_type": "SimpleText", "inputs": {"input_text": "a"}},
    "2": {"class_type": "ViewText", "inputs": {"text": ["1", 0]}},
}
END = message("execution_success")
PICTURE = {"filename": "a.png", "subfolder": "b", "type": "output"}


def run(*messages: Any, **said: Any) -> list[Any]:
    with scripted(*messages, **said) as server:
        return list(ComfyServer(server.url, timeout_s=10).run(GRAPH))


def test_what_happens_is_told_in_its_order() -> None:
    """
    Queued, what is cached, what runs and how far, the text so far, and what was made.
    """
    assert run(
        message("execution_start"),
        message("execution_cached", nodes=["1"]),
        message("executing", node="2"),
        message("progress", node="2", value=1, max=4),
        text_of("2", "so f\u00e4r"),
        message("executed", node="2", output={"text": ["done"], "images": [PICTURE]}),
        END,
    ) == [
        Queued(PROMPT_ID),
        NodesCached(("1",)),
        NodeRuns("2"),
        NodeProgress("2", 1, 4),
        NodeText("2", "so f\u00e4r"),
        NodeMade("2", {"text": ["done"], "images": [PICTURE]}),
    ]


def test_texts_and_files_are_found_in_what_was_made() -> None:
    """
    Whatever they are called; what is neither stays where it is.
    """
    made = NodeMade("2", {"text": ["a", 3], "images": [PICTURE, {"x": 1}], "width": 3, "x": None})
    assert made.texts == ("a",)
    assert made.files == (MadeFile("a.png", "b", "output"),)


def test_what_is_told_of_others_is_nothing() -> None:
    """
    Other graphs, other messages, pictures of what is being made, and what is no JSON.
    """
    other = json.dumps({"type": "executing", "data": {"prompt_id": "x", "node": "1"}})
    events = run(
        other,
        "not json",
        "[1]",
        json.dumps({"type": "executing"}),
        b"\x00\x00\x00\x01picture",
        b"",
        text_of("2", "before it began"),
        message("execution_start"),
        text_of("9", "of no node of ours"),
        b"\x00\x00\x00\x03\xff\xff\xff\xff\xff",
        message("something_new", node="2"),
        message("executing", node=None),
    )
    assert events == [Queued(PROMPT_ID)]


def test_a_node_that_fails_is_named_with_its_sentence() -> None:
    """
    As ComfyUI tells it.
    """
    failed = message("execution_error", node_id="2", exception_message="text: is no text\n")
    with pytest.raises(GraphFailedError) as caught:
        run(message("execution_start"), failed)
    assert str(caught.value) == "node 2 (ViewText): text: is no text"
    with pytest.raises(GraphFailedError, match=r"node 9 \(a node inside it\): does not say why"):
        run(message("execution_error", node_id="9"))


def test_what_does_not_hang_on_a_blocked_node_is_told_before_the_graph_fails() -> None:
    """
    The gate blocks what would have followed; its report is shown all the same.
    """
    blocked = message(
        "execution_error",
        node_id="1",
        exception_type="ExecutionBlocked",
        exception_message="Execution Blocked: not safe",
    )
    made = message("executed", node="2", output={"text": ["the report"]})
    with scripted(message("execution_start"), blocked, made, END) as server:
        events = ComfyServer(server.url, timeout_s=10).run(GRAPH)
        told = [next(events), next(events)]
        with pytest.raises(GraphFailedError, match=r"node 1 \(.*\): Execution Blocked: not safe"):
            next(events)
    assert told == [Queued(PROMPT_ID), NodeMade("2", {"text": ["the report"]})]


def test_a_graph_that_is_stopped_is_told() -> None:
    """
    By whoever stopped it.
    """
    with pytest.raises(GraphStoppedError, match=r"node 2 \(ViewText\): was stopped there"):
        run(message("execution_interrupted", node_id="2"))


def test_a_graph_that_is_refused_is_told_node_by_node() -> None:
    """
    With what is wrong at each.
    """
    refusal = {
        "error": {"type": "prompt_outputs_failed_validation", "message": "Prompt has no outputs"},
        "node_errors": {
            "2": {"errors": [{"message": "Required input is missing", "details": "text"}]},
            "3": "odd",
        },
    }
    with pytest.raises(GraphRefusedError) as caught:
        run(refusal=refusal)
    assert caught.value.nodes == {"2 (ViewText)": "Required input is missing: text"}
    assert "does not take the graph: Prompt has no outputs\n  node 2 (ViewText)" in str(
        caught.value
    )
    for odd in ({}, {"error": "no"}, {"error": 3, "node_errors": 4}):
        with pytest.raises(GraphRefusedError, match="does not take the graph"):
            run(refusal=odd)


def test_a_comfyui_that_goes_away_is_told() -> None:
    """
    The graph may have been half done.
    """
    with pytest.raises(GraphServerError, match="hung up before the graph had run to its end"):
        run(message("execution_start"), HANG_UP)


def test_a_comfyui_that_is_not_there_is_told() -> None:
    """
    With the question that helps most.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(GraphServerError, match="nothing listens there; is ComfyUI running"):
        list(ComfyServer(f"http://127.0.0.1:{port}").run(GRAPH))


def test_what_is_no_comfyui_is_told() -> None:
    """
    Another server on the port, and one that says nothing.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(GraphServerError, match="is no ComfyUI that can be listened to"):
            list(ComfyServer(url, timeout_s=0.3).run(GRAPH))

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")

        for _ in range(2):
            threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(GraphServerError, match="is no ComfyUI that can be listened to"):
            list(ComfyServer(url, timeout_s=5).run(GRAPH))


def test_a_run_is_stopped_whether_it_waits_or_runs() -> None:
    """
    Taken from the queue, and interrupted; no other is.
    """
    with scripted(WAIT) as server:
        ComfyServer(server.url).stop(PROMPT_ID)
        assert server.asked == [
            ("/queue", {"delete": [PROMPT_ID]}),
            ("/interrupt", {"prompt_id": PROMPT_ID}),
        ]


def test_a_file_is_fetched() -> None:
    """
    Or said not to be there.
    """
    with scripted(files={"a.png": b"picture"}) as server:
        comfyui = ComfyServer(server.url)
        assert comfyui.file(MadeFile("a.png", "b", "output")) == b"picture"
        with pytest.raises(GraphServerError, match=r"does not give 'b\.png'"):
            comfyui.file(MadeFile("b.png", "", "temp"))


@pytest.mark.parametrize(
    "address", ["http://example.com", "ftp://localhost", "http://a:b@localhost"]
)
def test_an_address_that_may_not_be_dialled_is_refused(address: str) -> None:
    """
    A graph holds what somebody made; it goes to this machine unless it is said.
    """
    with pytest.raises(EndpointError):
        ComfyServer(address)
