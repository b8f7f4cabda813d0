"""Tests of `vlmcore_comfy.nodes.detection`, with tiny detectors: real files, nonsense found."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tiny_detectors import make_tiny_detector
from vlmcore.errors import ContractError, LimitExceededError, VlmcoreError
from vlmcore.vision.documents import detections_from_document
from vlmcore.vlm.detector_catalog import DETECTORS
from vlmcore_comfy import detecting
from vlmcore_comfy.hosting import AloneHost, NodeStoppedError
from vlmcore_comfy.nodes.detection import open_vocabulary_detection
from vlmcore_comfy.nodes.videos import track_detections

CUSTOM = "Custom Hugging Face model"
HEIGHT, WIDTH = 48, 90


class Folders(AloneHost):
    """A ComfyUI that has tiny detectors in models/detection."""

    device = "cpu"

    def __init__(self, root: Path) -> None:
        self.root = root
        self.done: list[float] = []
        self.asked = 0
        self.stops_after: int | None = None

    def model_folders(self, kind: str, /) -> Sequence[Path]:
        return (self.root / kind,)

    def progress(self, done: float, total: float, /) -> None:
        self.done.append(done / total)

    def raise_if_stopped(self) -> None:
        self.asked += 1
        if self.stops_after is not None and self.asked > self.stops_after:
            raise NodeStoppedError


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    make_tiny_detector("grounding-dino", root / "detection" / "dino")
    make_tiny_detector("owlv2", root / "detection" / "owlv2-base-patch16-ensemble")
    return root


@pytest.fixture(scope="module", autouse=True)
def _closed_at_the_end() -> Iterator[None]:
    yield
    detecting.KEPT.clear()


@pytest.fixture
def host(root: Path) -> Folders:
    return Folders(root)


def noise(count: int, seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    return torch.from_numpy(random.random((count, HEIGHT, WIDTH, 3), np.float32))


def detect(host: Folders, image: Any, **changes: Any) -> Any:
    return open_vocabulary_detection(
        **{
            "image": image,
            "model": CUSTOM,
            "labels": "a cup, red hand",
            "box_threshold": 0.0,
            "text_threshold": 0.0,
            "max_detections": 6,
            "fps": 4.0,
            "nms_threshold": 1.0,
            "custom_model_id": "dino",
            "comfyui": host,
            **changes,
        }
    )


def test_every_detector_of_the_core_can_be_chosen() -> None:
    """
    By the labels that workflows saved, and one for all others.
    """
    labels = open_vocabulary_detection.inputs[1].options["options"]
    assert [*(spec.label for spec in DETECTORS), CUSTOM] == labels


def test_all_outputs_tell_of_the_same_things(host: Folders) -> None:
    """
    What travels on, the document, the picture, the mask, and the boxes in both forms of ComfyUI.
    """
    image = noise(2)
    found, said, preview, mask, boxes, described = detect(host, image)

    frames = json.loads(said)["frames"]
    assert [(0, 0.0), (1, 0.25)] == [(frame["frame"], frame["time_s"]) for frame in frames]
    read = [
        detections_from_document({k: frame[k] for k in frame.keys() - {"frame", "time_s"}})
        for frame in frames
    ]
    assert list(found.frames) == read
    assert (4.0, [6, 6]) == (found.rate_hz, [len(each) for each in found.frames])

    assert preview.shape == image.shape
    assert not torch.equal(preview, image)
    assert (2, HEIGHT, WIDTH) == tuple(mask.shape)
    for each, marked, of_frame in zip(found.frames, mask, boxes, strict=True):
        assert [item.place.bounds for item in each] == [
            pytest.approx(reached(box), abs=1) for box in of_frame
        ]
        expected = torch.zeros(HEIGHT, WIDTH)
        for box in of_frame:
            left, top, right, bottom = reached(box)
            expected[top:bottom, left:right] = 1
        assert torch.equal(expected, marked)
    assert [(box["x"], box["metadata"]["frame"]) for box in described] == [
        (box["x"], index) for index, of_frame in enumerate(boxes) for box in of_frame
    ]
    assert {"a cup", "red hand"} >= {box["metadata"]["label"] for box in described}


def reached(box: dict[str, int]) -> tuple[int, int, int, int]:
    assert {int} == {type(box[key]) for key in ("x", "y", "width", "height")}
    return box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"]


def test_where_nothing_is_found_there_are_empty_lists_and_an_empty_mask(host: Folders) -> None:
    """
    What follows runs all the same.
    """
    found, _, preview, mask, boxes, described = detect(host, noise(1), box_threshold=1.0)
    assert 0 == len(found.frames[0])
    assert ([[]], []) == (boxes, described)
    assert 0 == float(mask.sum())
    assert torch.allclose(preview, noise(1), atol=1 / 255)
    assert 0 == track_detections(found, 0.3, 5)[2]


@pytest.mark.parametrize("batch_size", [1, 2, 16])
def test_images_that_go_through_together_are_found_in_as_alone(
    host: Folders, batch_size: int
) -> None:
    """
    And progress is told after each batch.
    """
    alone = detect(host, noise(3))[0].frames
    host.done.clear()
    together = detect(host, noise(3), batch_size=batch_size)[0].frames
    for one, other in zip(alone, together, strict=True):
        assert np.allclose(one.xyxy, other.xyxy, atol=0.05)
    assert 1.0 == host.done[-1]
    assert math.ceil(3 / batch_size) == len(host.done)


def test_one_pixel_and_transparent_images_are_looked_at(host: Folders) -> None:
    """
    Whatever is found lies in the image.
    """
    assert (1, 1, 1) == tuple(detect(host, torch.zeros(1, 1, 1, 3))[3].shape)
    assert (1, 8, 8, 3) == tuple(detect(host, torch.zeros(1, 8, 8, 4))[2].shape)


def test_a_model_of_the_list_is_taken_from_the_folder_of_models(host: Folders) -> None:
    """
    By the last part of its name, before the hub is asked.
    """
    found = detect(host, noise(1), model="OWLv2 Base Ensemble", custom_model_id="")[0]
    assert 6 == len(found.frames[0])


def test_the_same_detector_stays_for_the_next_graph(host: Folders) -> None:
    """
    Unless it is to be unloaded.
    """
    choice = detecting.DetectorChoice(CUSTOM, "dino")

    def refuse() -> Any:
        pytest.fail("it was opened anew")

    detect(host, noise(1))
    detecting.KEPT.get(choice, refuse)
    detect(host, noise(1), unload_after=True)
    with pytest.raises(KeyError):
        detecting.KEPT.get(choice, lambda: {}["closed"])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"image": torch.zeros(1, 8, 8)}, "image: .*Convert Mask to Image"),
        ({"image": torch.zeros(0, 8, 8, 3)}, "image: .*at least one"),
        ({"image": torch.full((1, 2, 2, 3), float("nan"))}, "image: 12 of 12 values are NaN"),
        ({"image": None}, "image: got None"),
        ({"labels": " ,\n, "}, "labels: got none"),
        ({"labels": "a\x00cup"}, "labels"),
        ({"labels": "x" * 300}, "labels"),
        ({"labels": ",".join(map(str, range(1001)))}, "max_labels"),
        ({"custom_model_id": " "}, "custom_model_id: is blank, expected an id of the hub"),
        ({"custom_model_id": "../detection/dino"}, r"\.\./detection/dino"),
        ({"custom_model_id": "no/such"}, "no/such"),
    ],
)
def test_what_cannot_be_looked_for_is_refused(
    host: Folders, changes: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    In one sentence, and the next graph works.
    """
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(VlmcoreError, match=said) as caught:
        detect(host, **{"image": noise(1), **changes})
    assert "\n" not in str(caught.value)
    assert 6 == len(detect(host, noise(1))[0].frames[0])


def test_an_image_that_is_too_large_is_refused_before_it_is_converted(host: Folders) -> None:
    """
    The pixel budget makes it smaller.
    """
    with pytest.raises((ContractError, LimitExceededError), match="max_pixels"):
        detect(host, torch.zeros(1, 1, 1, 1).expand(1, 9000, 9000, 3))


def test_labels_in_any_script_are_given_back_as_they_were_typed(host: Folders) -> None:
    """
    Through the document, too.
    """
    said = detect(host, noise(1), labels="чашка, 手")[1]
    assert {"чашка", "手"} >= {
        each["label"] for each in json.loads(said)["frames"][0]["detections"]
    }


def test_a_person_who_stops_the_graph_waits_for_one_batch_at_most(host: Folders) -> None:
    """
    And the next graph works.
    """
    host.stops_after = 40 + 2
    with pytest.raises(NodeStoppedError):
        detect(host, noise(40))
    assert 2 == len(host.done)
    host.asked = 40 - host.stops_after
    with pytest.raises(NodeStoppedError):
        detect(host, noise(100))
    assert 2 == len(host.done), "it ended while the images were converted"
    host.stops_after = None
    assert 1 == len(detect(host, noise(1))[0].frames)


def test_two_graphs_at_once_share_the_detector(host: Folders) -> None:
    """
    Each is given what is found in its own image.
    """
    alone = [detect(host, noise(1, seed))[0].frames[0] for seed in range(4)]
    detecting.KEPT.clear()
    together = threading.Barrier(4)

    def ask(seed: int) -> Any:
        together.wait(timeout=30)
        return detect(host, noise(1, seed))[0].frames[0]

    with ThreadPoolExecutor(4) as pool:
        for one, other in zip(alone, pool.map(ask, range(4)), strict=True):
            assert np.allclose(one.xyxy, other.xyxy, atol=0.05)
