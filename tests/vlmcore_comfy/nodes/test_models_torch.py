"""The nodes that ask models: shown while they write, stopped within a token."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from model_server_cases import answers, refuses, serving
from vlmcore.embedded import model_directory
from vlmcore.errors import (
    ContractError,
    EndpointError,
    ModelAccessError,
    ModelServerError,
    StructureError,
)
from vlmcore.media.images import load_image
from vlmcore.media.sampling import sample_frames
from vlmcore.vlm.catalog import MODELS as CATALOG
from vlmcore.vlm.predictor import Predictor
from vlmcore_comfy import models
from vlmcore_comfy.conversations import Exchange, recall, remember
from vlmcore_comfy.hosting import AloneHost, NodeStoppedError
from vlmcore_comfy.images import image_of
from vlmcore_comfy.nodes.hosted import hosted_llm, hosted_vlm
from vlmcore_comfy.nodes.models import describe_each, legacy_vlm, modern_vlm
from vlmcore_comfy.nodes.video_reasoning import temporal_reasoner

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

SAMPLE = Path(models.__file__).parents[1] / "vlmcore" / "embedded" / "samples" / "scene-1.png"
ASKED: dict[str, Any] = {
    "prompt": "What is in this picture?",
    "model": "Embedded (offline, tiny)",
    "custom_model_id": "",
    "memory_mode": "CPU",
    "max_new_tokens": 32,
    "temperature": 0.0,
    "top_p": 1.0,
}


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    models.KEPT.clear()


def scene() -> Any:
    return image_of([load_image(SAMPLE)])


class Watching(AloneHost):
    """A host that keeps what it was shown, and stops after so many looks."""

    def __init__(self, *, stops_after: int | None = None, folders: tuple[Path, ...] = ()) -> None:
        self.texts: list[str] = []
        self.looks = 0
        self._stops_after = stops_after
        self._folders = folders
        self.node_id = "7"

    def raise_if_stopped(self) -> None:
        self.looks += 1
        if self._stops_after is not None and self.looks > self._stops_after:
            raise NodeStoppedError

    def show_text(self, text: str, /) -> None:
        self.texts.append(text)

    def model_folders(self, kind: str, /) -> tuple[Path, ...]:
        return self._folders if kind == "LLM" else ()


def test_the_embedded_model_answers_and_what_it_wrote_is_shown() -> None:
    """
    The last that is shown is the answer; the same graph gives the same answer.
    """
    host = Watching()
    (text,) = modern_vlm(image=scene(), comfyui=host, **ASKED)
    assert "blue circle" in text
    assert host.texts[-1] == text
    assert modern_vlm(image=scene(), comfyui=Watching(), **ASKED) == (text,)


def test_a_model_looks_once_at_an_image_that_is_asked_about_again() -> None:
    """
    What it made of the image stays with the model from one graph to the next.
    """
    for question in ("What is in the picture?", "What colour is it?", "How many are there?"):
        modern_vlm(image=scene(), **{**ASKED, "prompt": question})
    predictor = next(iter(models.KEPT._open.values()))
    report = predictor.reuse_report  # type: ignore[attr-defined]
    assert report.vision_misses == 1
    assert report.prefix_hits + report.vision_hits == 2


def test_nothing_is_shown_where_nobody_wants_it() -> None:
    """
    The switch is the person's.
    """
    host = Watching()
    modern_vlm(image=scene(), stream_output=False, comfyui=host, **ASKED)
    assert host.texts == []


def test_a_model_is_one_for_all_nodes_and_goes_when_told_to() -> None:
    """
    A second node takes the one that is open; *unload_after* closes it.
    """
    modern_vlm(image=scene(), **ASKED)
    opened = next(iter(models.KEPT._open.values()))
    describe_each(scene(), "What?", "Embedded (offline, tiny)", "", "CPU", 8, 0.0)
    assert [opened] == list(models.KEPT._open.values())
    modern_vlm(image=scene(), unload_after=True, **ASKED)
    assert not models.KEPT._open


def test_a_model_stops_between_two_tokens() -> None:
    """
    And can be asked again.
    """
    with pytest.raises(NodeStoppedError):
        modern_vlm(image=scene(), comfyui=Watching(stops_after=3), **ASKED)
    assert "circle" in modern_vlm(image=scene(), **ASKED)[0]


def test_a_stopped_node_loads_nothing_more() -> None:
    """
    It looks before it asks.
    """
    with pytest.raises(NodeStoppedError):
        modern_vlm(image=scene(), comfyui=Watching(stops_after=0), **ASKED)


def test_a_folder_under_the_models_of_comfyui_comes_before_the_hub(tmp_path: Path) -> None:
    """
    By its name, by the id of the hub, or by the last part of it; extra folders too.
    """
    folder = tmp_path / "mine"
    folder.symlink_to(model_directory())
    (tmp_path / "Qwen3-VL-2B-Instruct").symlink_to(model_directory())
    host = Watching(folders=(tmp_path,))
    own = {**ASKED, "model": "Custom Hugging Face model", "custom_model_id": "mine"}
    assert "circle" in modern_vlm(image=scene(), comfyui=host, **own)[0]
    named = {**ASKED, "model": "Qwen 3 VL 2B Instruct"}
    assert "circle" in modern_vlm(image=scene(), comfyui=host, **named)[0]


@pytest.mark.parametrize("name", ["../secret", "/etc"])
def test_a_name_does_not_lead_out_of_the_model_folders(name: str, tmp_path: Path) -> None:
    """
    A graph comes from anywhere.
    """
    (tmp_path / "models").mkdir()
    (tmp_path / "secret").symlink_to(model_directory())
    host = Watching(folders=(tmp_path / "models",))
    assert models.model_folder(name, models.FOLDERS, host) is None


@pytest.mark.parametrize(
    ("changes", "kind", "said"),
    [
        ({"prompt": "  "}, ContractError, "prompt: is blank"),
        (
            {"model": "Custom Hugging Face model"},
            ContractError,
            "custom_model_id: is blank, expected",
        ),
        (
            {"model": "Custom Hugging Face model", "custom_model_id": "no/such"},
            ModelAccessError,
            "no/such",
        ),
        ({"image": torch.zeros(0, 4, 4, 3)}, ContractError, "image: got the shape"),
        ({"image": torch.zeros(1, 4, 5)}, ContractError, "Convert Mask to Image"),
        (
            {"video_frames": torch.zeros(2, 4, 4, 3), "video_selection": 3},
            ContractError,
            "video_sel",
        ),
        ({"max_new_tokens": 0}, ContractError, "max_new_tokens"),
    ],
)
def test_what_cannot_be_asked_is_told(changes: dict[str, Any], kind: Any, said: str) -> None:
    """
    By its widget or socket, before a model is loaded where that can be.
    """
    with pytest.raises(kind, match=said):
        modern_vlm(**{**ASKED, **changes})


@pytest.mark.parametrize("side", [1, 3000])
def test_images_of_every_size_are_looked_at(side: int) -> None:
    """
    One pixel, and nine million.
    """
    assert modern_vlm(image=torch.full((1, side, side, 3), 0.5), **ASKED)[0]


def test_a_selection_has_to_be_of_the_frames() -> None:
    """
    Of as many as there are.
    """
    frames = torch.rand(6, 32, 32, 3)
    chosen = sample_frames((frames.numpy() * 255).astype("uint8"), rate_hz=2).selection
    with pytest.raises(ContractError, match="video_selection: is of 6 frames, expected the 2"):
        modern_vlm(video_frames=frames[:2], video_selection=chosen, **ASKED)
    assert modern_vlm(video_frames=frames, video_selection=chosen, **ASKED)[0]


def test_each_image_of_a_batch_is_described() -> None:
    """
    One text for each, in a list that maps what follows.
    """
    host = Watching()
    batch = torch.cat([scene(), torch.zeros_like(scene())])
    texts, said = describe_each(
        batch, "What is here?", "Embedded (offline, tiny)", "", "CPU", 16, 0.0, comfyui=host
    )
    assert len(texts) == 2
    assert texts[0] != texts[1]
    assert json.loads(said) == texts
    assert host.texts[-1] == "\n\n".join(texts)


def test_a_graph_of_old_runs() -> None:
    """
    Where a model is named, it takes the place of the one that is chosen.
    """
    asked = {**ASKED, "model": "Qwen 3.5 2B", "custom_model_id": "embedded"}
    assert "circle" in legacy_vlm(image=scene(), **asked)[0]


def test_each_label_is_one_of_the_catalog() -> None:
    """
    Or stands for another, or for the embedded one.
    """
    labels = {spec.label for spec in CATALOG}
    chosen = [
        *next(each for each in modern_vlm.inputs if each.name == "model").options["options"],
        *next(each for each in legacy_vlm.inputs if each.name == "model").options["options"],
    ]
    assert set(chosen) - labels == {"Embedded (offline, tiny)"}
    assert len(set(chosen)) == 27


def test_a_video_is_reasoned_about_and_an_answer_without_events_is_told() -> None:
    """
    The embedded model writes no JSON: strictly that is an error, and else its words stay.
    """
    asked: dict[str, Any] = {
        "frames": torch.cat([torch.zeros(4, 48, 64, 3), torch.ones(4, 48, 64, 3)]),
        "fps": 4.0,
        "task": "Action timeline",
        "question": "",
        "model": "Embedded (offline, tiny)",
        "custom_model_id": "",
        "memory_mode": "CPU",
        "max_frames": 3,
        "max_events": 4,
        "max_new_tokens": 32,
    }
    summary, events, selection, sampled, raw, told, events_json, _ = temporal_reasoner(
        strict_output=False, **asked
    )
    assert summary
    assert raw.strip()
    assert (len(events), len(selection.frames), len(sampled)) == (0, 3, 3)
    assert "holds no JSON" in json.loads(told)["problem"]
    assert json.loads(events_json)["events"] == []
    with pytest.raises(Exception, match="turn strict_output off to take it as text"):
        temporal_reasoner(**asked)


HOSTED: dict[str, Any] = {
    "model_name": "OpenAI — GPT-5.6 Sol",
    "credential_source": "No key (loopback custom endpoint only)",
    "model_override": "tiny",
}
LLM: dict[str, Any] = {
    **HOSTED,
    "chat_type": True,
    "description": "Be short.",
    "question": "Why?",
    "context_size": 0,
    "seed": 0,
}
VLM: dict[str, Any] = {
    **HOSTED,
    "prompt": "What is here?",
    "system_prompt": "Look.",
    "max_frames": 2,
    "max_image_edge": 256,
    "jpeg_quality": 80,
    "image_detail": "auto",
}


def test_a_server_of_ones_own_is_asked() -> None:
    """
    The description is the system's text; what is written is shown.
    """
    host = Watching()
    with serving(answers("Because it is.")) as server:
        assert hosted_llm(base_url=server.url, comfyui=host, **LLM) == ("Because it is.",)
        sent = server.asked[0].document
    assert [each["role"] for each in sent["messages"]] == ["system", "user"]
    assert sent["model"] == "tiny"
    assert host.texts[-1] == "Because it is."


def test_what_was_said_before_is_said_again_node_by_node() -> None:
    """
    As many exchanges as the widget says.
    """
    host = Watching()
    host.node_id = "a-node-of-its-own"
    with serving(answers("First."), answers("Second.")) as server:
        hosted_llm(base_url=server.url, comfyui=host, **{**LLM, "question": "One?"})
        hosted_llm(
            base_url=server.url, comfyui=host, **{**LLM, "question": "Two?", "context_size": 1}
        )
        asked = server.asked[1].document["messages"][-1]["content"]
    assert "User: One?\nAssistant: First." in json.dumps(asked).replace("\\n", "\n")
    assert recall("another-node", 3) == []


def test_a_conversation_is_kept_for_some_nodes_and_some_exchanges() -> None:
    """
    ComfyUI may run for weeks.
    """
    for index in range(40):
        remember("long", Exchange(str(index), ""))
    assert [each.question for each in recall("long", 30)] == [str(n) for n in range(10, 40)]
    for index in range(70):
        remember(f"many-{index}", Exchange("q", "a"))
    assert recall("many-0", 1) == []
    assert recall("many-69", 1) == [Exchange("q", "a")]


def test_images_are_sent_as_small_and_as_few_as_the_widgets_say() -> None:
    """
    Evenly from the first to the last; nothing is sent that was not counted.
    """
    with serving(answers("A cube.")) as server:
        said = hosted_vlm(
            images=torch.rand(9, 40, 600, 3), base_url=server.url, **{**VLM, "max_frames": 3}
        )
        (message,) = [
            each for each in server.asked[0].document["messages"] if each["role"] == "user"
        ]
    assert said == ("A cube.", "tiny", 3)
    assert sum(part["type"] == "image_url" for part in message["content"]) == 3


@pytest.mark.parametrize(
    ("changes", "kind", "said"),
    [
        ({"base_url": ""}, ContractError, "base_url: is blank"),
        ({"base_url": "https://example.com"}, ContractError, "expected a server on this machine"),
        ({"model_override": ""}, ContractError, "model_override: is blank"),
        ({"question": " ", "description": ""}, ContractError, "question: is blank"),
        ({"use_system_proxy": True}, ContractError, "use_system_proxy: is on"),
        ({"web_search": True}, ContractError, "web_search: is on, and needs api_mode Responses"),
        ({"output_format": "JSON Schema"}, ContractError, "json_schema: is blank"),
        (
            {"output_format": "JSON Schema", "json_schema": "[1"},
            ContractError,
            "json_schema: is no JSON",
        ),
        (
            {
                "credential_source": "Provider environment variable",
                "base_url": "http://example.com",
            },
            EndpointError,
            "not encrypted",
        ),
    ],
)
def test_what_contradicts_itself_is_told(changes: dict[str, Any], kind: Any, said: str) -> None:
    """
    Before anything is sent.
    """
    with pytest.raises(kind, match=said):
        hosted_llm(**{**LLM, "base_url": "http://127.0.0.1:9", **changes})


def test_a_service_without_its_key_says_which_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    It is taken from the environment, and nowhere else; a label of old names its service.
    """
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    asked = {
        **LLM,
        "model_name": "Anthropic — A model that nobody knows",
        "credential_source": "Provider environment variable",
        "model_override": "",
    }
    with pytest.raises(ContractError, match="ANTHROPIC_API_KEY: is not set in the environment"):
        hosted_llm(**asked)
    with pytest.raises(ContractError, match="model_name: got 'Somebody"):
        hosted_llm(**{**asked, "model_name": "Somebody — a model"})


def test_a_server_that_refuses_is_told_without_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Whatever it repeats.
    """
    monkeypatch.setenv("CUSTOM_API_KEY", "sk-a-secret-of-mine")
    with (
        serving(refuses(401, "wrong key sk-a-secret-of-mine")) as server,
        pytest.raises(ModelServerError) as caught,
    ):
        hosted_llm(
            base_url=server.url, **{**LLM, "credential_source": "Provider environment variable"}
        )
    assert "sk-a-secret-of-mine" not in str(caught.value)


def test_json_is_held_to_its_schema() -> None:
    """
    What does not fit is an error that says where.
    """
    schema = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}})
    form = {"output_format": "JSON Schema", "json_schema": schema}
    with serving(answers('{"n": 3}'), answers('{"n": "x"}')) as server:
        assert hosted_llm(base_url=server.url, **LLM, **form) == ('{"n": 3}',)
        with pytest.raises(StructureError, match="n"):
            hosted_llm(base_url=server.url, **LLM, **form)


def test_a_server_that_is_silent_is_left_when_the_person_stops() -> None:
    """
    The connection is closed, which makes servers stop.
    """
    stops: list[Callable[[], None]] = []

    class Stopping(Watching):
        @contextmanager
        def when_stopped(self, call: Callable[[], None], /) -> Iterator[None]:
            stops.append(call)
            yield

        def raise_if_stopped(self) -> None:
            if stops and self.stopped:
                raise NodeStoppedError

        stopped = False

    host = Stopping()

    def silent(asked: Any) -> Iterator[bytes]:
        host.stopped = True
        stops[0]()
        asked.closing.wait(10)
        yield b""

    began_s = time.monotonic()
    with serving(silent) as server, pytest.raises(NodeStoppedError):
        hosted_llm(base_url=server.url, comfyui=host, **LLM)
    assert time.monotonic() - began_s < 15


def test_a_predictor_of_the_core_is_what_is_kept() -> None:
    """
    The nodes hold what any program holds.
    """
    modern_vlm(image=scene(), **ASKED)
    (opened,) = models.KEPT._open.values()
    assert isinstance(opened, Predictor)
