"""The door to ComfyUI: nodes run where they belong, stop when asked to, and say what they give."""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from comfyui.stub import Blocker, Interrupted, StubComfyUI, stubbed
from vlmcore.errors import ContractError
from vlmcore_comfy import catalog
from vlmcore_comfy.declaring import Blocked, Node, NodeResult, Output, choice, node, text
from vlmcore_comfy.hosting import ALONE, Host
from vlmcore_comfy.nodes.policies import http_policy

torch = pytest.importorskip("torch")


@pytest.fixture
def comfyui(tmp_path: Path) -> Iterator[StubComfyUI]:
    with stubbed(tmp_path) as stub:
        yield stub


def declared(run: Any, *, outputs: int = 1, **more: Any) -> Node[..., Any]:
    inputs = more.pop("inputs", (text("word"),))
    return node(
        "Tried",
        title="Tried",
        category="Tests",
        description="Tried.",
        inputs=inputs,
        outputs=(Output("STRING", "text"),) * outputs,
        **more,
    )(run)


def run(stub: StubComfyUI, tried: Node[..., Any], **inputs: Any) -> Any:
    kind = stub.door["extension"].comfy_class(tried)

    async def queued() -> Any:
        stub.node.set("7")
        return await asyncio.wait_for(kind.execute(**inputs), 20)

    return asyncio.run(queued())


def test_what_comfyui_asks_of_a_node_is_made_once(comfyui: StubComfyUI) -> None:
    """
    It asks ten times for each node that a graph runs, and a type of its own is a new class: graphs
    of ten nodes took half of their time over that.
    """
    kind = comfyui.door["extension"].comfy_class(declared(lambda word: (word,)))
    assert kind.define_schema() is kind.define_schema()


def test_a_quick_node_runs_in_place(comfyui: StubComfyUI) -> None:
    """
    On ComfyUI's own thread: a thread for each would cost more than the node.
    """
    threads = []

    def tried(word: str) -> tuple[str]:
        threads.append(threading.current_thread())
        return (word.upper(),)

    assert run(comfyui, declared(tried), word="yes").values == ("YES",)
    assert threads == [threading.main_thread()]


def test_a_long_node_leaves_the_loop_to_others(comfyui: StubComfyUI) -> None:
    """
    On a thread of its own, which knows the id of its node, and keeps no gradients.
    """

    def tried(word: str, *, comfyui: Host = ALONE) -> tuple[str]:
        assert threading.current_thread() is not threading.main_thread()
        assert torch.is_inference_mode_enabled()
        comfyui.show_text(f"{word} so far")
        comfyui.progress(1, 2)
        return (str(comfyui.node_id),)

    assert run(comfyui, declared(tried, is_threaded=True), word="yes").values == ("7",)
    assert comfyui.texts == [("7", "yes so far")]
    assert comfyui.progress == [(1, 2)]


def test_a_node_of_the_network_runs_on_the_loop_that_outlives_graphs(comfyui: StubComfyUI) -> None:
    """
    A connection belongs to its loop, and ComfyUI makes one for each graph.
    """
    loops = []

    async def tried(word: str) -> tuple[str]:
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return (word,)

    kept = declared(tried)
    for word in ("one", "other"):
        assert run(comfyui, kept, word=word).values == (word,)
    assert loops[0] is loops[1]


@pytest.mark.parametrize("where", ["loop", "thread"])
def test_a_node_ends_when_the_person_stops_the_graph(comfyui: StubComfyUI, where: str) -> None:
    """
    In ComfyUI's own words, and the wish is taken back: the next graph runs.
    """
    ended = threading.Event()

    def blocking(word: str, *, comfyui: Host = ALONE) -> tuple[str]:
        try:
            while True:
                comfyui.raise_if_stopped()
                time.sleep(0.01)
        finally:
            ended.set()
        return (word,)

    async def awaiting(word: str) -> tuple[str]:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return (word,)

    tried = declared(awaiting) if where == "loop" else declared(blocking, is_threaded=True)
    threading.Timer(0.2, lambda: setattr(comfyui, "is_interrupted", True)).start()
    with pytest.raises(Interrupted):
        run(comfyui, tried, word="yes")
    assert ended.wait(5)
    assert not comfyui.is_interrupted


def test_what_waits_is_called_when_the_person_stops_the_graph(comfyui: StubComfyUI) -> None:
    """
    A model that is still reading its prompt looks at nothing: its token is cancelled instead.
    """
    called = threading.Event()

    def tried(word: str, *, comfyui: Host = ALONE) -> tuple[str]:
        with comfyui.when_stopped(called.set):
            assert called.wait(5)
        comfyui.raise_if_stopped()
        return (word,)

    threading.Timer(0.2, lambda: setattr(comfyui, "is_interrupted", True)).start()
    with pytest.raises(Interrupted):
        run(comfyui, declared(tried, is_threaded=True), word="yes")


def test_a_node_that_comfyui_gave_up_ends(comfyui: StubComfyUI) -> None:
    """
    Another node failed: nobody waits for this one any more.
    """
    ended = threading.Event()

    def tried(word: str, *, comfyui: Host = ALONE) -> tuple[str]:
        try:
            while True:
                comfyui.raise_if_stopped()
                time.sleep(0.01)
        finally:
            ended.set()
        return (word,)

    kind = comfyui.door["extension"].comfy_class(declared(tried, is_threaded=True))

    async def queued() -> None:
        task = asyncio.ensure_future(kind.execute(word="yes"))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(queued())
    assert ended.wait(5)


def test_an_error_of_ours_stays_what_it_is(comfyui: StubComfyUI) -> None:
    """
    ComfyUI shows its sentence on the node.
    """

    def tried(word: str) -> tuple[str]:
        raise ContractError("word", f"got {word}, expected another")

    with pytest.raises(ContractError, match="word: got yes, expected another"):
        run(comfyui, declared(tried), word="yes")


def test_what_is_shown_and_what_is_blocked_come_in_the_words_of_comfyui(
    comfyui: StubComfyUI,
) -> None:
    """
    What follows a blocked output is told the reason, and does not run.
    """

    def tried(word: str) -> NodeResult:
        return NodeResult((word, Blocked("not safe")), {"text": [word]})

    given = run(comfyui, declared(tried, outputs=2), word="yes")
    assert given.ui == {"text": ["yes"]}
    assert given.values[0] == "yes"
    assert isinstance(given.values[1], Blocker)
    assert given.values[1].message == "not safe"


def test_a_choice_that_cannot_be_made_is_refused_with_what_was_meant(comfyui: StubComfyUI) -> None:
    """
    ComfyUI looks at widgets only, and older ones not even at those.
    """

    def tried(how: str) -> tuple[str]:
        return (how,)

    one = declared(tried, inputs=(choice("how", ("Pretty JSON", "Compact JSON")),))
    with pytest.raises(ContractError, match=r"expected one of .*did you mean 'Pretty JSON'"):
        run(comfyui, one, how="pretty json")
    free = declared(tried, inputs=(choice("how", ("a", "b"), is_open=True),))
    assert run(comfyui, free, how="c").values == ("c",)
    kind = comfyui.door["extension"].comfy_class(free)
    assert kind.validate_inputs(how="c") is True


def test_folders_are_those_of_comfyui(comfyui: StubComfyUI, tmp_path: Path) -> None:
    """
    Added ones too, and one that it does not know is looked for under its models.
    """
    host = comfyui.door["host"].ComfyHost()
    assert host.model_folders("LLM") == (tmp_path / "models" / "LLM",)
    assert host.model_folders("VLM") == (tmp_path / "models" / "VLM",)
    assert host.input_folder == tmp_path / "input"
    assert host.output_folder == tmp_path / "output"
    assert host.temporary_folder == tmp_path / "temp"
    assert host.device == "cpu"


def test_every_node_becomes_a_class_of_comfyui(comfyui: StubComfyUI) -> None:
    """
    With what is missing in its description, and its switches in the words of ComfyUI.
    """
    extension = comfyui.door["extension"].VlmcoreExtension()
    kinds = asyncio.run(extension.get_node_list())
    schemas = {kind.define_schema().node_id: kind.define_schema() for kind in kinds}
    assert len(schemas) >= 38
    assert schemas["ViewText"].is_output_node
    assert schemas["ModernVLM"].hidden == ["UNIQUE_ID"]
    assert schemas["LegacyModernVLM"].is_deprecated


def test_a_node_says_which_command_brings_what_it_needs(
    comfyui: StubComfyUI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    It is in the list all the same, and no other node is missing.
    """
    extension = comfyui.door["extension"]
    missing = type("Missing", (), {"is_complete": False})
    monkeypatch.setattr(extension, "look_at", lambda _: missing)
    one = declared(lambda word: (word,), extras=("audio",))
    said = extension.comfy_class(one).define_schema().description
    assert said == 'Tried.\n\nNeeds: pip install "vlmcore[audio]"'


def test_a_theme_that_cannot_be_read_takes_no_other_with_it(
    comfyui: StubComfyUI, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """
    It is told in the log, and by the node of diagnostics.
    """

    def broken() -> tuple[Node[..., Any], ...]:
        raise ImportError("cannot import name 'x'")

    themes = {**catalog._THEMES, "texts": broken}
    monkeypatch.setattr(catalog, "_THEMES", themes)
    extension = comfyui.door["extension"].VlmcoreExtension()
    kinds = asyncio.run(extension.get_node_list())
    names = {kind.define_schema().node_id for kind in kinds}
    assert "ViewText" not in names
    assert "VLMTextClean" in names
    assert "the nodes for texts: ImportError: cannot import name 'x'" in caplog.text
    host = comfyui.door["host"].ComfyHost()
    assert host.missing_nodes == ("texts: ImportError: cannot import name 'x'",)


def test_a_node_is_run_again_as_its_fingerprint_says(comfyui: StubComfyUI) -> None:
    """
    A number that is not equal to itself runs it each time.
    """
    kind = comfyui.door["extension"].comfy_class(http_policy)
    again = kind.fingerprint_inputs(endpoint="x", ask_again=True)
    assert again != again  # noqa: PLR0124 - that is the point
    assert kind.fingerprint_inputs(endpoint="x", ask_again=False) == ""
    assert kind.fingerprint_inputs(endpoint="x") == ""


class Model:
    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.is_freed = False

    def free(self) -> None:
        self.is_freed = True


def test_comfyui_makes_room_for_a_model_and_knows_its_size(comfyui: StubComfyUI) -> None:
    """
    Before it is loaded; two who hold it share one.
    """
    residency = comfyui.door["residency"].ComfyResidency()
    model = Model(300)
    for _ in range(2):
        residency.hold("a", lambda: model, 200)
    assert comfyui.freed == [(200, "cpu")]
    (entry,) = (each.model for each in comfyui.loaded)
    assert (entry.size, entry.loaded_size()) == (300, 300)
    with residency.using("a") as used:
        assert used is model
    residency.release("a")
    assert not model.is_freed
    residency.release("a")
    assert model.is_freed
    assert comfyui.loaded == []


def test_a_model_leaves_when_comfyui_wants_the_memory_and_comes_back(comfyui: StubComfyUI) -> None:
    """
    Whoever holds it notices nothing but the time.
    """
    residency = comfyui.door["residency"].ComfyResidency()
    models = []

    def load() -> Model:
        models.append(Model(10))
        return models[-1]

    residency.hold("a", load, 10)
    entry = weakref.ref(comfyui.loaded[0].model)
    comfyui.loaded.pop().model.detach()
    assert models[0].is_freed
    assert residency.resident_keys == ()
    assert entry() is not None, "ComfyUI cleans its list of what is dropped while it walks it"
    with residency.using("a") as again:
        assert again is models[1]
    assert len(comfyui.loaded) == 1
    residency.release("a")
    assert models[1].is_freed


def test_a_model_that_is_writing_leaves_when_it_is_done(comfyui: StubComfyUI) -> None:
    """
    An answer is not cut, and the memory is given back all the same.
    """
    residency = comfyui.door["residency"].ComfyResidency()
    model = Model(10)
    residency.hold("a", lambda: model, 10)
    with residency.using("a"):
        comfyui.loaded.pop().model.detach()
        assert not model.is_freed
    assert model.is_freed


def test_a_model_leaves_as_a_whole(comfyui: StubComfyUI) -> None:
    """
    ComfyUI may ask for a part of it: nothing is half there.
    """
    residency = comfyui.door["residency"].ComfyResidency()
    model = Model(10)
    residency.hold("a", lambda: model, 10)
    entry = comfyui.loaded[0].model
    assert entry.partially_unload("cpu", 5) == 0
    assert entry.partially_load("cpu", 5) == 0
    assert not model.is_freed


def test_a_load_that_fails_leaves_nothing_in_the_list(comfyui: StubComfyUI) -> None:
    """
    ComfyUI knows of models that are there.
    """
    residency = comfyui.door["residency"].ComfyResidency()

    def load() -> Model:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        residency.hold("a", load, 10)
    assert comfyui.loaded == []
    assert residency.resident_keys == ()
