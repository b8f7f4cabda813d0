"""Opening models: real files of several architectures, and what is wrong with some of them."""

from __future__ import annotations

import gc
import json
import logging
import os
import shutil
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from safetensors.torch import load_file, save_file

from tiny_models import CHAT_KINDS
from vlmcore.errors import (
    ContractError,
    ModelAccessError,
    ModelError,
    ModelMemoryError,
    UnsupportedModelError,
)
from vlmcore.vlm.backends import _opening, _placing, _quietly
from vlmcore.vlm.backends._opening import estimate_bytes, open_model
from vlmcore.vlm.placement import Attention, Dtype, MemoryMode, Placement
from vlmcore.vlm.residency import ProcessResidency, ResidentModel
from vlmcore.vlm.sources import ModelSource, resolve_model

CPU = Placement(device="cpu")
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: <image>{% endfor %}"
HAS_TORCHVISION = transformers.utils.is_torchvision_available()


@pytest.fixture
def copy_of(tiny_model, tmp_path):
    """Give a copy of a tiny model that a test may damage."""

    def copy(kind: str) -> Path:
        folder = tmp_path / kind
        shutil.copytree(tiny_model(kind), folder)
        for file in folder.iterdir():
            file.chmod(0o644)
        return folder

    return copy


def open_folder(folder: Path, placement: Placement = CPU, **options):
    return open_model(resolve_model(folder), placement, **options)


def change_json(path: Path, **changes: object) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, **changes}), encoding="utf-8")


def answer(opened) -> list[int]:
    """Answer one question about one image, greedily."""
    image = Image.fromarray(np.full((48, 48, 3), 200, np.uint8))
    parts = [{"type": "image"}, {"type": "text", "text": "What is this?"}]
    text = opened.processor.apply_chat_template(
        [{"role": "user", "content": parts}], add_generation_prompt=True, tokenize=False
    )
    inputs = opened.processor(text=[text], images=[[image]], return_tensors="pt")
    with torch.inference_mode():
        return opened.model.generate(**inputs, max_new_tokens=4, do_sample=False)[0].tolist()


@pytest.mark.parametrize("kind", CHAT_KINDS)
def test_a_model_is_opened_ready_to_answer(tiny_model, kind) -> None:
    """
    Every architecture is opened from its files alone, without torchvision and num2words, too.
    """
    opened = open_folder(tiny_model(kind))

    assert isinstance(opened, ResidentModel)
    assert not opened.model.training
    assert not any(parameter.requires_grad for parameter in opened.model.parameters())
    assert ("cpu", torch.float32, "sdpa") == (opened.device.type, opened.dtype, opened.attention)
    assert "stored in float32" == opened.dtype_reason
    assert "left" == opened.processor.tokenizer.padding_side
    assert opened.processor.chat_template
    assert opened.nbytes == pytest.approx(
        estimate_bytes(resolve_model(tiny_model(kind)), CPU), rel=0.01
    )
    assert len(answer(opened)) > 4


@pytest.mark.skipif(HAS_TORCHVISION, reason="torchvision brings video processors")
@pytest.mark.parametrize("kind", ["qwen3_vl", "smolvlm"])
def test_without_torchvision_a_model_for_videos_takes_images(tiny_model, kind) -> None:
    """
    It says that it takes no videos, and its images are as large as its files say.
    """
    opened = open_folder(tiny_model(kind))

    assert not opened.supports_video
    assert opened.processor.video_processor is None
    if kind == "qwen3_vl":
        image = Image.fromarray(np.zeros((256, 256, 3), np.uint8))
        grid = opened.processor.image_processor(images=[image], return_tensors="np")
        assert [[1, 8, 8]] == grid["image_grid_thw"].tolist()


def test_a_format_and_an_attention_can_be_asked_for(tiny_model) -> None:
    """
    What was asked for is what the model has.
    """
    placement = Placement(device="cpu", dtype=Dtype.BFLOAT16, attention=Attention.EAGER)
    opened = open_folder(tiny_model("idefics3"), placement)

    assert {torch.bfloat16} == {p.dtype for p in opened.model.parameters()}
    assert (torch.bfloat16, "as asked", "eager") == (
        opened.dtype, opened.dtype_reason, opened.attention,
    )  # fmt: skip


def test_a_checkpoint_in_16_bits_becomes_float32_on_a_processor(copy_of, monkeypatch) -> None:
    """
    The embedded model is stored in float16, and computes in float32.
    """
    monkeypatch.setattr(_placing, "_processor_has_bfloat16", lambda: False)
    folder = copy_of("llava")
    weights = {k: v.half() for k, v in load_file(folder / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    change_json(folder / "config.json", dtype="float16")

    opened = open_folder(folder)

    assert {torch.float32} == {p.dtype for p in opened.model.parameters()}
    assert "this processor is fastest in it" == opened.dtype_reason


def test_models_can_be_opened_by_several_threads_at_once(tiny_model) -> None:
    """
    transformers changes PyTorch's default number format while it builds a model: not for others.
    """
    formats = {"llava": Dtype.BFLOAT16, "idefics3": Dtype.FLOAT32, "gemma3": Dtype.FLOAT16}
    opened = {}

    def load(kind: str) -> None:
        opened[kind] = open_folder(tiny_model(kind), Placement(device="cpu", dtype=formats[kind]))

    for kind in formats:
        tiny_model(kind)
    threads = [threading.Thread(target=load, args=(kind,)) for kind in formats]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert torch.float32 is torch.get_default_dtype()
    for kind, wanted in formats.items():
        assert {f"torch.{wanted.value}"} == {str(p.dtype) for p in opened[kind].model.parameters()}


def test_a_freed_model_is_gone_also_where_something_still_holds_it(tiny_model) -> None:
    """
    A traceback that keeps a frame alive does not keep gigabytes alive.
    """
    opened = open_folder(tiny_model("llava"))
    model = opened.model
    parameter = weakref.ref(next(model.parameters()))

    opened.free()

    assert 0 == opened.nbytes
    assert {"meta"} == {p.device.type for p in model.parameters()}
    opened.free()
    del model
    gc.collect()
    assert parameter() is None


def test_a_model_released_by_the_residency_is_gone_from_memory(tiny_model) -> None:
    """
    Nothing of transformers or of ours keeps a closed model.
    """
    residency = ProcessResidency()
    source = resolve_model(tiny_model("qwen3_vl"))
    residency.hold("m", lambda: open_model(source, CPU), estimate_bytes(source, CPU))
    with residency.using("m") as opened:
        model = weakref.ref(opened.model)
        answer(opened)
    del opened

    residency.release("m")
    gc.collect()

    assert model() is None


def test_a_model_without_chat_template_is_refused_unless_one_is_given(tiny_model) -> None:
    """
    The error names the model and the argument that helps.
    """
    folder = tiny_model("no_chat_template")
    with pytest.raises(UnsupportedModelError) as error:
        open_folder(folder)
    assert (
        f"{folder}: has no chat template: give one as chat_template=, or use a chat model"
        == str(error.value)
    )

    opened = open_folder(folder, chat_template=TEMPLATE)

    assert TEMPLATE == opened.processor.chat_template
    assert len(answer(opened)) > 4


def test_a_given_template_takes_the_place_of_the_models_own(tiny_model) -> None:
    """
    What the caller gives is what is used.
    """
    assert (
        TEMPLATE == open_folder(tiny_model("llava"), chat_template=TEMPLATE).processor.chat_template
    )


@pytest.mark.parametrize("template", ["", "  ", 3, "{% for %}", "{{ raise_exception('no') }}"])
def test_a_template_that_does_not_work_is_said_before_the_weights_are_read(
    tiny_model, template
) -> None:
    """
    A broken template is the caller's mistake, found at once.
    """
    with pytest.raises(ContractError) as error:
        open_folder(tiny_model("llava"), chat_template=template)

    assert "chat_template" == error.value.field


def test_a_model_that_cannot_see_is_refused(tiny_model) -> None:
    """
    A text model is named for what it is.
    """
    with pytest.raises(UnsupportedModelError, match=r"takes images and writes text.*'llama'"):
        open_folder(tiny_model("text_only"))


def test_a_model_without_processor_is_refused(copy_of) -> None:
    """
    Weights without the description of their images are of no use.
    """
    folder = copy_of("llava")
    (folder / "processor_config.json").unlink()
    (folder / "preprocessor_config.json").unlink()

    with pytest.raises(UnsupportedModelError, match="processor"):
        open_folder(folder)


@pytest.mark.skipif(HAS_TORCHVISION, reason="torchvision is there")
def test_an_image_processor_that_needs_torchvision_names_it(copy_of) -> None:
    """
    Some have no other: then the package is named, and not num2words or something else.
    """
    folder = copy_of("llava")
    (folder / "processor_config.json").unlink()
    processor = {
        "processor_class": "Lfm2VlProcessor",
        "image_processor_type": "Lfm2VlImageProcessorFast",
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(processor), encoding="utf-8")

    with pytest.raises(UnsupportedModelError, match="needs the package 'torchvision'"):
        open_folder(folder)


def test_another_package_that_is_missing_is_not_taken_for_torchvision(copy_of, monkeypatch) -> None:
    """
    What transformers says is what is told.
    """

    def fail(*_: object, **__: object) -> None:
        raise ImportError("it requires the SentencePiece library\nand more")

    monkeypatch.setattr(transformers.AutoProcessor, "from_pretrained", fail)
    monkeypatch.setattr(transformers.LlavaProcessor, "from_pretrained", fail)

    with pytest.raises(UnsupportedModelError, match=r"SentencePiece library\)$"):
        open_folder(copy_of("llava"))


def test_code_of_a_repository_is_never_run(copy_of) -> None:
    """
    A model that needs such code is refused, and the code is not even looked at.
    """
    folder = copy_of("llava")
    (folder / "modeling.py").write_text("raise SystemExit('it was run')", encoding="utf-8")
    auto_map = {"AutoConfig": "modeling.C", "AutoModelForImageTextToText": "modeling.M"}
    change_json(folder / "config.json", auto_map=auto_map, model_type="of_their_own")

    with pytest.raises(UnsupportedModelError, match=r"\(auto_map\), and such code is never run"):
        open_folder(folder)


def test_code_that_is_not_needed_is_not_in_the_way(copy_of) -> None:
    """
    Repositories keep such code beside architectures that transformers has by now.
    """
    folder = copy_of("llava")
    change_json(folder / "config.json", auto_map={"AutoConfig": "modeling.C"})

    assert open_folder(folder).model.config.model_type == "llava"


def test_an_architecture_of_the_future_is_named_with_the_version(copy_of) -> None:
    """
    Whoever meets a newer model learns which transformers does not have it.
    """
    folder = copy_of("llava")
    change_json(folder / "config.json", model_type="of_tomorrow")

    with pytest.raises(UnsupportedModelError) as error:
        open_folder(folder)

    words = f"transformers {transformers.__version__} has no architecture 'of_tomorrow'"
    assert words in str(error.value)


def test_a_configuration_of_nonsense_is_named(copy_of) -> None:
    """
    Whatever transformers raises for it is our error, with the model.
    """
    folder = copy_of("llava")
    change_json(folder / "config.json", text_config={"model_type": "llama", "hidden_size": "wide"})

    with pytest.raises(ModelError) as error:
        open_folder(folder)

    assert str(folder) == error.value.model


def test_weights_that_were_cut_short_are_named(copy_of) -> None:
    """
    A broken download is found before anything is allocated.
    """
    folder = copy_of("llava")
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[:-10])

    with pytest.raises(ModelError, match=r"model.safetensors is damaged"):
        open_folder(folder)


def test_weights_that_are_missing_are_an_error_not_random_numbers(copy_of) -> None:
    """
    transformers would fill them with noise and answer nonsense.
    """
    folder = copy_of("llava")
    weights = load_file(folder / "model.safetensors")
    lacking = [name for name in weights if "mlp.down_proj" in name]
    for name in lacking:
        del weights[name]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})

    with pytest.raises(ModelError, match=f"its files lack {len(lacking)} of its weights, as '"):
        open_folder(folder)


def test_weights_of_another_shape_are_an_error(copy_of) -> None:
    """
    Weights of a model of another size are not bent to fit.
    """
    folder = copy_of("llava")
    weights = load_file(folder / "model.safetensors")
    name = next(name for name in weights if name.endswith("mlp.down_proj.weight"))
    weights[name] = weights[name][:, :-1].contiguous()
    save_file(weights, folder / "model.safetensors", {"format": "pt"})

    with pytest.raises(ModelError, match="cannot load it"):
        open_folder(folder)


def test_a_missing_part_of_the_weights_is_named(copy_of) -> None:
    """
    An index that names a file that is not there is a download that was cut short.
    """
    folder = copy_of("llava")
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    (folder / "model.safetensors").unlink()

    with pytest.raises(ModelAccessError, match=r"model-00001-of-00002.safetensors is missing"):
        open_folder(folder)


def test_too_little_memory_is_said_before_the_weights_are_read(tiny_model, monkeypatch) -> None:
    """
    The numbers come from the headers of the files.
    """
    monkeypatch.setattr(_placing, "free_host_bytes", lambda: 1000)
    monkeypatch.setattr(_opening, "_load", lambda *_: pytest.fail("weights were read"))

    with pytest.raises(ModelMemoryError, match=r"weights need .* are free on cpu") as error:
        open_folder(tiny_model("llava"))

    assert 1000 == error.value.available_bytes
    assert error.value.needed_bytes > 1000


@pytest.mark.parametrize(
    "failure",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB\nmore"),
        MemoryError("no"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
    ],
    ids=["device", "python", "host"],
)
def test_memory_that_runs_out_while_loading_is_our_error(tiny_model, monkeypatch, failure) -> None:
    """
    However the allocator says it.
    """

    def fail(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(_opening, "_load", fail)

    with pytest.raises(ModelMemoryError, match="memory ran out on cpu while loading") as error:
        open_folder(tiny_model("llava"))

    assert "\n" not in str(error.value)


@pytest.mark.skipif(torch.cuda.is_available() or torch.xpu.is_available(), reason="it could run")
@pytest.mark.parametrize(
    "placement",
    [
        Placement(memory=MemoryMode.NF4),
        Placement(memory=MemoryMode.INT8),
        Placement(attention=Attention.FLASH_2),
    ],
)
def test_what_cannot_run_here_is_said_before_anything_is_downloaded(placement, monkeypatch) -> None:
    """
    No hub is asked for a model that could not be run then.
    """
    monkeypatch.setattr(_opening._hub, "fetch_description", lambda _: pytest.fail("hub was asked"))
    monkeypatch.setattr(_opening._hub, "cached_folder", lambda _: pytest.fail("cache was asked"))
    source = resolve_model("qwen3-vl-2b")

    for call in (open_model, estimate_bytes):
        with pytest.raises(UnsupportedModelError, match="it would run on"):
            call(source, placement)


def test_a_model_that_is_not_here_yet_is_estimated_from_the_catalog(monkeypatch) -> None:
    """
    So that others can leave before it is loaded; of an unknown one nothing is known.
    """
    monkeypatch.setattr(_opening._hub, "cached_folder", lambda _: None)
    in_16_bits = Placement(device="cpu", dtype=Dtype.BFLOAT16)

    assert 5 << 30 == estimate_bytes(resolve_model("qwen3-vl-2b"), in_16_bits)
    assert 0 == estimate_bytes(resolve_model("org/name"), in_16_bits)


def test_a_folder_that_vanished_is_our_error(tmp_path) -> None:
    """
    Between finding a folder and opening it, somebody may delete it.
    """
    source = ModelSource(name="m", location=str(tmp_path / "gone"), is_local=True)

    with pytest.raises(ModelAccessError, match=r"config.json cannot be read"):
        open_model(source, CPU)


def test_loading_says_nothing_and_leaves_the_settings_of_transformers_alone(
    tiny_model, capfd
) -> None:
    """
    Bars and hints are for users of transformers; their settings are as they were afterwards.
    """
    tiny_model("qwen3_vl")
    before = (transformers.logging.get_verbosity(), transformers.logging.is_progress_bar_enabled())
    capfd.readouterr()

    open_folder(tiny_model("qwen3_vl"))

    assert ("", "") == capfd.readouterr()
    assert before == (
        transformers.logging.get_verbosity(),
        transformers.logging.is_progress_bar_enabled(),
    )


def test_who_wants_to_hear_transformers_still_does() -> None:
    """
    A level that was raised is kept.
    """
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity(logging.DEBUG)
    try:
        with _quietly.quietly():
            assert logging.DEBUG == transformers.logging.get_verbosity()
        assert logging.DEBUG == transformers.logging.get_verbosity()
    finally:
        transformers.logging.set_verbosity(before)


@pytest.mark.parametrize("already", [None, "false"])
@pytest.mark.parametrize("version", ["4.57.6", "5.24.0"])
def test_weights_are_loaded_in_parallel_unless_the_environment_says_otherwise(
    monkeypatch, already, version
) -> None:
    """
    Version 4 is told by a variable, which is gone again afterwards; version 5 does it by itself.
    """
    name = "HF_ENABLE_PARALLEL_LOADING"
    monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(_quietly.transformers, "__version__", version)
    if already is not None:
        monkeypatch.setenv(name, already)

    with _quietly.quietly():
        during = os.environ.get(name)

    wanted = "true" if version.startswith("4") else None
    assert (already or wanted) == during
    assert already == os.environ.get(name)


def test_two_loads_at_once_restore_the_settings_when_both_are_done() -> None:
    """
    The first to finish does not bring the bars back for the other.
    """
    level = transformers.logging.get_verbosity()
    inside, leave = threading.Event(), threading.Event()

    def load() -> None:
        with _quietly.quietly():
            inside.set()
            leave.wait(10)

    with _quietly.quietly():
        thread = threading.Thread(target=load)
        thread.start()
        assert inside.wait(10)
    assert transformers.logging.get_verbosity() > level
    leave.set()
    thread.join(10)

    assert level == transformers.logging.get_verbosity()
