"""The node of datasets captions a folder, goes on where it ended, and stays where it may."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from vlmcore import embedded
from vlmcore.errors import ContractError
from vlmcore_comfy import models
from vlmcore_comfy.hosting import AloneHost, NodeStoppedError
from vlmcore_comfy.nodes.datasets import caption_dataset

pytest.importorskip("torch")
pytest.importorskip("transformers")

SAMPLES = Path(embedded.__file__).parent / "samples"
ASKED: dict[str, Any] = {
    "images": "shots",
    "dataset": "made",
    "form": "A text file for each image",
    "prompt": "What is in this picture?",
    "model": "Embedded (offline, tiny)",
    "custom_model_id": "",
    "memory_mode": "CPU",
    "max_new_tokens": 24,
}


class Folders(AloneHost):
    """A host whose folders a test can look into; it may be stopped."""

    def __init__(self, folder: Path, *, is_stopped: bool = False) -> None:
        self.folder = folder
        self.texts: list[str] = []
        self._stops = is_stopped

    @property
    def input_folder(self) -> Path:
        return self.folder / "input"

    @property
    def output_folder(self) -> Path:
        return self.folder / "output"

    def show_text(self, text: str, /) -> None:
        self.texts.append(text)

    @contextmanager
    def when_stopped(self, call: Callable[[], None], /) -> Iterator[None]:
        if self._stops:
            call()
        yield

    def raise_if_stopped(self) -> None:
        if self._stops:
            raise NodeStoppedError


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Folders]:
    shots = tmp_path / "input" / "shots"
    shots.mkdir(parents=True)
    for name in ("scene-1.png", "scene-2.png"):
        shutil.copy(SAMPLES / name, shots)
    yield Folders(tmp_path)
    models.KEPT.clear()


def made(host: Folders, **changes: Any) -> dict[str, Any]:
    result = caption_dataset(comfyui=host, **{**ASKED, **changes})
    report = json.loads(result.values[0])
    assert result.values[1:] == (report["images"], len(report["failures"]))
    return dict(report)


def test_each_image_gets_a_text_file_and_a_second_run_asks_nothing(host: Folders) -> None:
    """
    What is done is done; a new image is.
    """
    assert made(host, trigger_word="ohwx")["results"] == {"captioned": 2}
    texts = {each.name: each.read_text() for each in (host.output_folder / "made").glob("*.txt")}
    assert set(texts) == {"scene-1.txt", "scene-2.txt"}
    assert all(text.startswith("ohwx, ") for text in texts.values())
    assert host.texts[-1] == "2 of 2 images"
    shutil.copy(SAMPLES / "scene-3.png", host.input_folder / "shots")
    again = made(host, trigger_word="ohwx")["results"]
    assert again.pop("captioned") == 1
    assert sum(again.values()) == 2


def test_all_captions_may_go_into_one_file(host: Folders) -> None:
    """
    A line for each image.
    """
    made(host, form="One JSONL file")
    lines = (host.output_folder / "made" / "captions.jsonl").read_text().splitlines()
    assert len(lines) == 2
    assert "blue circle" in " ".join(lines)


def test_an_image_that_cannot_be_read_is_told_and_ends_nothing(host: Folders) -> None:
    """
    With its reason; the others are captioned.
    """
    (host.input_folder / "shots" / "broken.png").write_bytes(b"no picture")
    report = made(host)
    assert report["results"] == {"captioned": 2, "failed": 1}
    (failure,) = report["failures"]
    assert "broken.png" in failure["image"]
    assert failure["problem"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"images": "../"}, "images: got '../', expected a folder in ComfyUI's input folder"),
        ({"images": "/etc"}, "images: got '/etc', expected"),
        ({"images": "nowhere"}, "images: 'nowhere' is no folder of the input"),
        ({"images": "a\x00b"}, "images: got "),
        ({"dataset": "../made"}, "dataset: got '../made', expected a folder in ComfyUI's output"),
        ({"dataset": " "}, "dataset: is blank"),
        ({"prompt": " "}, "text: "),
    ],
)
def test_nothing_but_the_folders_of_comfyui_is_touched(
    host: Folders, changes: dict[str, str], said: str
) -> None:
    """
    A graph comes from anywhere.
    """
    with pytest.raises(ContractError) as caught:
        made(host, **changes)
    assert said in str(caught.value)
    assert not host.output_folder.exists()


def test_a_link_does_not_lead_out_of_the_input(host: Folders, tmp_path: Path) -> None:
    """
    Whoever made it.
    """
    (host.input_folder / "link").symlink_to(tmp_path)
    with pytest.raises(ContractError, match="images: got 'link', expected a folder in ComfyUI"):
        made(host, images="link")


def test_a_stopped_graph_keeps_what_was_written(host: Folders) -> None:
    """
    And the next goes on.
    """
    stopped = Folders(host.folder, is_stopped=True)
    with pytest.raises(NodeStoppedError):
        made(stopped)
    assert sum(made(host)["results"].values()) == 2
