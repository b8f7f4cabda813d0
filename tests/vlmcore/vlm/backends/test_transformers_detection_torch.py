"""Detectors, on real files of each kind: what they find is nonsense, and held to the contract."""

import json
import shutil
import threading

import attrs
import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from tiny_detectors import DETECTOR_KINDS, make_tiny_detector
from vlmcore.errors import (
    ContractError,
    DetectionCancelledError,
    DetectionError,
    LimitExceededError,
    MediaError,
    MissingDependencyError,
    ModelError,
    UnsupportedModelError,
)
from vlmcore.vision.detections import Detections
from vlmcore.vlm.backends import _detector_kinds
from vlmcore.vlm.detector import DetectionOptions, Detector
from vlmcore.vlm.generation import CancelToken
from vlmcore.vlm.loading import load_detector
from vlmcore.vlm.residency import ProcessResidency

LABELS = ("A cup", "red hand", "circle")
ALL = DetectionOptions(box_threshold=0.0, text_threshold=0.0, max_iou=None, max_detections=1000)


def picture(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


PICTURES = [picture(48, 90), picture(48, 90, 1), picture(120, 40, 2), picture(64, 64, 3)]


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory):
    root, made = tmp_path_factory.mktemp("detectors"), {}

    def of_kind(kind):
        if kind not in made:
            made[kind] = make_tiny_detector(kind, root / kind)
        return made[kind]

    return of_kind


@pytest.fixture(scope="module", params=DETECTOR_KINDS)
def tiny(request, folder_of):
    with load_detector(folder_of(request.param), device="cpu") as detector:
        yield detector


@pytest.fixture(scope="module")
def grounding(folder_of):
    with load_detector(folder_of("grounding-dino"), device="cpu") as detector:
        yield detector


def same(one: Detections, other: Detections) -> bool:
    return (
        one.labels == other.labels
        and np.allclose(one.scores, other.scores, atol=1e-4)
        and np.allclose(one.xyxy, other.xyxy, atol=1e-2)
    )


def test_boxes_lie_in_the_image_and_have_the_labels_to_the_letter(tiny):
    """In pixels of the image as it was given, the highest score first."""
    for pixels in PICTURES:
        found = tiny.detect(pixels, LABELS, ALL)

        assert (found.height_px, found.width_px) == pixels.shape[:2]
        assert set(found.labels) <= set(LABELS)
        assert len(found) > 0
        assert sorted(found.scores, reverse=True) == found.scores.tolist()


def test_a_batch_finds_what_single_images_do(tiny):
    """Images of other sizes do not change what is found, whatever they share a batch with."""
    alone = [tiny.detect(pixels, LABELS, ALL) for pixels in PICTURES]

    for size in (2, 4):
        together = tiny.detect_many(PICTURES, LABELS, ALL, batch_size=size)
        assert all(same(one, other) for one, other in zip(alone, together, strict=True))


def test_a_higher_threshold_finds_a_part_of_what_a_lower_one_does(tiny):
    """And nothing else, also where overlaps are dropped."""
    loose = DetectionOptions(box_threshold=0.01, text_threshold=0.0)
    before = tiny.detect(PICTURES[0], LABELS, loose)
    for threshold in (0.05, 0.3, 0.6, 0.95, 1.0):
        strict = attrs.evolve(loose, box_threshold=threshold)
        found = tiny.detect(PICTURES[0], LABELS, strict)

        assert set(found.items) <= set(before.items)
        assert all(found.scores >= threshold)
        before = found


def test_the_threshold_of_words_is_for_models_that_score_words(tiny):
    """Above that of boxes it decides; others do not know it."""
    strict = attrs.evolve(ALL, text_threshold=1.0)
    found = tiny.detect(PICTURES[0], LABELS, strict)

    assert (len(found) == 0) is tiny.info.architecture.endswith("grounding-dino")


def test_boxes_that_overlap_are_dropped_and_no_more_given_than_asked_for(tiny):
    """As `Detections.suppressed` does; the highest scores stay."""
    everything = tiny.detect(PICTURES[0], LABELS, ALL)
    suppressed = tiny.detect(PICTURES[0], LABELS, attrs.evolve(ALL, max_iou=0.5))
    two = tiny.detect(PICTURES[0], LABELS, attrs.evolve(ALL, max_iou=0.5, max_detections=2))

    assert everything.suppressed(0.5) == suppressed
    assert suppressed.items[:2] == two.items


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_number_format_of_16_bits_runs_or_says_what_helps(tiny, dtype):
    """Parts of these models compute in 32 bits whatever is asked."""
    with load_detector(tiny.info.source, device="cpu", dtype=dtype) as detector:
        assert f"{dtype} (as asked)" == detector.info.dtype
        try:
            answer = str(len(detector.detect(PICTURES[0], LABELS, ALL)))
        except DetectionError as error:
            answer = str(error)
        assert answer != "0"
        assert answer.isdecimal() or answer.endswith("not finite; dtype='float32' may help)")


def test_a_detector_says_what_it_is(tiny):
    """Float32 unless something else is asked for."""
    assert isinstance(tiny, Detector)
    assert "float32 (as asked)" == tiny.info.dtype
    assert "cpu" == tiny.info.device
    assert tiny.info.backend.startswith("transformers ")


def test_images_come_from_whatever_media_takes(tiny, tmp_path):
    """And are turned as their EXIF says."""
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter to the right
    path = tmp_path / "turned.png"
    Image.fromarray(np.rot90(PICTURES[0]).copy()).save(path, exif=exif)

    assert tiny.detect(PICTURES[0], LABELS, ALL) == tiny.detect(path, LABELS, ALL)


def test_a_very_thin_image_is_looked_at(tiny):
    """It is stretched where a backbone would have nothing left of it."""
    found = tiny.detect(Image.fromarray(picture(1, 300)), LABELS, ALL)

    assert (1, 300) == (found.height_px, found.width_px)


def test_threads_share_a_detector(tiny):
    """Each gets its own answer."""
    expected = [tiny.detect(pixels, LABELS, ALL) for pixels in PICTURES]
    found = [None] * len(PICTURES)

    def look(i):
        found[i] = tiny.detect(PICTURES[i], LABELS, ALL)

    threads = [threading.Thread(target=look, args=(i,)) for i in range(len(PICTURES))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(same(one, other) for one, other in zip(expected, found, strict=True))


def test_a_search_that_is_cancelled_before_or_between_layers_ends(tiny):
    """With an error that says so; the next one works."""
    before, during = CancelToken(), CancelToken()
    before.cancel()
    with pytest.raises(DetectionCancelledError):
        tiny.detect(PICTURES[0], LABELS, cancel=before)

    layers = []

    def begin(layer, _inputs):
        layers.append(layer)
        during.cancel()

    watching = torch.nn.modules.module.register_module_forward_pre_hook(begin)
    try:
        with pytest.raises(DetectionCancelledError):
            tiny.detect(PICTURES[0], LABELS, cancel=during)
    finally:
        watching.remove()

    assert 0 < len(layers) < 100
    assert len(tiny.detect(PICTURES[0], LABELS, ALL)) > 0


def test_two_detectors_of_a_model_share_its_weights_beside_other_models(tiny):
    """In one residency, and the last that is closed gives the memory back."""
    residency = ProcessResidency(budget_bytes=1 << 30)
    with load_detector(tiny.info.source, device="cpu", residency=residency) as one:
        held = residency.resident_bytes
        with load_detector(tiny.info.source, device="cpu", residency=residency) as other:
            assert held == residency.resident_bytes > 0
            assert same(*(d.detect(PICTURES[0], LABELS, ALL) for d in (one, other)))
    assert 0 == residency.resident_bytes


def test_a_closed_detector_says_so(folder_of):
    """Closing twice is no error."""
    detector = load_detector(folder_of("owlv2"), device="cpu")
    detector.close()
    detector.close()

    with pytest.raises(ModelError, match="this detector is closed"):
        detector.detect(PICTURES[0], LABELS)


@pytest.mark.parametrize(
    ("labels", "field"),
    [
        ([], "labels"),
        ("a cup", "labels"),
        (["a cup", " "], "labels[1]"),
        (["a cup", "a cup"], "labels"),
        (["a\ncup"], "labels[0]"),
        (["a \x1b[31mcup"], "labels[0]"),
        (["a\u202ecup"], "labels[0]"),
        (["cup" * 100], "labels[0]"),
        ([3], "labels[0]"),
        ([str(i) for i in range(1001)], "max_labels"),
    ],
)
def test_labels_that_are_none_are_refused(grounding, labels, field):
    """None, blank, twice, with control characters, too long, too many."""
    with pytest.raises(ContractError) as refused:
        grounding.detect(PICTURES[0], labels)

    assert field == getattr(refused.value, "limit", refused.value.field)


def test_labels_of_more_words_than_a_model_reads_are_refused(tiny):
    """transformers would cut them off in silence, or fail in the middle."""
    with pytest.raises(ContractError, match="use fewer words"):
        tiny.detect(PICTURES[0], ["1 2 3 4 " * 30])


def test_marks_of_the_model_are_no_words(tiny):
    """They would end the text before the next label."""
    mark = "[SEP]" if tiny.info.architecture.endswith("grounding-dino") else "<|endoftext|>"
    with pytest.raises(ContractError, match="a mark of the model"):
        tiny.detect(PICTURES[0], ["cup", f"hand {mark} circle"])


def test_grounding_dino_is_asked_in_lower_case_with_dots_and_answers_as_it_was_asked(grounding):
    """A label may have its own dot and capitals, and words that other labels have, too."""
    written = ("A Large CUP.", "a small cup", "no. 5")
    plain = ("a large cup", "a small cup", "no. 5")
    one, other = (grounding.detect(PICTURES[0], labels, ALL) for labels in (written, plain))

    assert [plain[written.index(label)] for label in one.labels] == list(other.labels)
    assert (one.xyxy == other.xyxy).all()
    with pytest.raises(ContractError, match="expected a word"):
        grounding.detect(PICTURES[0], ["cup", "..."])


def test_arguments_that_are_others_are_refused(grounding):
    """One image is no list of images, and a number no option."""
    for arguments, field in (
        (("scene.png", LABELS), "images"),
        ((PICTURES, LABELS, 0.5), "options"),
    ):
        with pytest.raises(ContractError) as refused:
            grounding.detect_many(*arguments)
        assert field == refused.value.field
    with pytest.raises(LimitExceededError):
        grounding.detect_many(PICTURES, LABELS, batch_size=65)


def changed(folder, tmp_path, name, **changes):
    copied = shutil.copytree(folder, tmp_path / "changed")
    content = json.loads((copied / name).read_text())
    (copied / name).write_text(json.dumps({**content, **changes}))
    return copied


def test_models_of_another_kind_are_refused(tmp_path, tiny_model, folder_of):
    """Before any weight is read."""
    with pytest.raises(UnsupportedModelError, match="is no model that finds what labels name"):
        load_detector(tiny_model("llava"))
    owl = changed(folder_of("owlv2"), tmp_path, "config.json", model_type="owlvit")
    with pytest.raises(UnsupportedModelError, match="of the kind 'owlvit', expected one of"):
        load_detector(owl)


@pytest.mark.parametrize(
    "changes",
    [
        {"size": {"height": 64}},
        {"size": {"height": 64, "width": 1 << 20}},
        {"size": 64},
        {"size": {"shortest_edge": True, "longest_edge": 9}},
        {"image_mean": [0.5, 0.5]},
        {"image_std": [0.5, 0.0, 0.5]},
        {"image_std": "abc"},
    ],
)
def test_what_is_said_of_images_is_checked(tmp_path, folder_of, changes):
    """A file of a stranger asks for no memory and divides by nothing."""
    folder = changed(folder_of("owlv2"), tmp_path, "preprocessor_config.json", **changes)

    with pytest.raises(ModelError, match="does not say how images are prepared"):
        load_detector(folder)


def test_a_backbone_of_timm_needs_timm(folder_of, monkeypatch):
    """The error says what brings it."""
    monkeypatch.setattr(_detector_kinds, "_has_timm", lambda: False)
    monkeypatch.setattr(_detector_kinds, "_backbone_of", lambda _config: "timm_backbone")

    with pytest.raises(MissingDependencyError, match=r"vlmcore\[detection\]"):
        load_detector(folder_of("omdet-turbo"))


def test_numbers_that_are_not_finite_are_an_error(tmp_path, folder_of):
    """And not boxes somewhere."""
    folder = shutil.copytree(folder_of("owlv2"), tmp_path / "broken")
    weights = load_file(folder / "model.safetensors")
    save_file(
        {name: w * float("nan") if "box_head" in name else w for name, w in weights.items()},
        folder / "model.safetensors",
        metadata={"format": "pt"},
    )

    with (
        load_detector(folder, device="cpu") as detector,
        pytest.raises(DetectionError, match="not finite"),
    ):
        detector.detect(PICTURES[0], LABELS, ALL)


def test_an_image_that_is_three_pixels_high_is_found_in_once_its_layout_is_said(grounding):
    """
    Its shape alone leaves open which axis holds the channels, and nothing is guessed.
    """
    with pytest.raises(MediaError, match="ambiguous"):
        grounding.detect(picture(3, 40), LABELS, ALL)
    found = grounding.detect(picture(3, 40), LABELS, ALL, layout="HWC")
    assert (3, 40) == (found.height_px, found.width_px)
