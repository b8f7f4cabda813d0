"""Weights of real architectures by our own loader: those of transformers, to the last bit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from tiny_models import CHAT_KINDS
from vlmcore.embedded import model_directory, sample_scene_path
from vlmcore.errors import (
    ContractError,
    GenerationError,
    ModelError,
    ModelMemoryError,
    UnsupportedModelError,
)
from vlmcore.media.images import load_image
from vlmcore.vlm.backends import _weights
from vlmcore.vlm.backends._opening import OpenedModel, estimate_bytes, open_model
from vlmcore.vlm.generation import GenerationOptions
from vlmcore.vlm.loading import load_predictor
from vlmcore.vlm.placement import Dtype, MemoryMode, Placement, WeightLoading
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.sources import resolve_model
from vlmcore.weights.packing import pack

pytestmark = pytest.mark.skipif(
    int(transformers.__version__.partition(".")[0]) < 5, reason="it needs transformers 5"
)

LOADINGS = [WeightLoading.MAPPED, WeightLoading.COPIED, WeightLoading.LAZY]


def placed(weights: WeightLoading, budget: int = 1 << 30, **options) -> Placement:
    budgets = {"weights_budget_bytes": budget} if weights is WeightLoading.LAZY else {}
    return Placement(device="cpu", weights=weights, **budgets, **options)


def opened(folder: Path, placement: Placement) -> OpenedModel:
    return open_model(resolve_model(folder), placement)


def differences(model, expected) -> list[str]:
    """Name what is not the same: parameters and buffers, their dtypes, what is tied."""
    ours = dict([*model.named_parameters(), *model.named_buffers()])
    theirs = dict([*expected.named_parameters(), *expected.named_buffers()])
    assert ours.keys() == theirs.keys()
    return [
        name
        for name, tensor in theirs.items()
        if ours[name].dtype != tensor.dtype or not torch.equal(ours[name], tensor)
    ]


@pytest.mark.parametrize("dtype", [Dtype.FLOAT32, Dtype.BFLOAT16])
@pytest.mark.parametrize("kind", CHAT_KINDS)
def test_weights_are_those_of_transformers(tiny_model, kind, dtype) -> None:
    """
    Renamed, converted and tied as it does, whatever way they come.
    """
    expected = opened(tiny_model(kind), Placement(device="cpu", dtype=dtype)).model

    for weights in LOADINGS:
        model = opened(tiny_model(kind), placed(weights, dtype=dtype)).model

        assert [] == differences(model, expected), weights
        assert expected.generation_config.to_dict() == model.generation_config.to_dict()
        assert not model.training
        assert not any(parameter.requires_grad for parameter in model.parameters())


def make_paligemma(folder: Path) -> Path:
    """Write a tiny PaliGemma, whose head is tied to its embeddings."""
    text = transformers.GemmaConfig(
        vocab_size=64,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
    )
    vision = transformers.SiglipVisionConfig(
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        image_size=32,
        patch_size=8,
        vision_use_head=False,
    )
    config = transformers.PaliGemmaConfig(
        text_config=text, vision_config=vision, projection_dim=16, image_token_index=63
    )
    torch.manual_seed(4)
    transformers.PaliGemmaForConditionalGeneration(config).save_pretrained(folder)
    return folder


def make_qwen3_vl_moe(folder: Path) -> Path:
    """Write a tiny Qwen3-VL-MoE, whose experts transformers merges."""
    config = transformers.Qwen3VLMoeConfig(
        text_config={
            "vocab_size": 64,
            "hidden_size": 16,
            "intermediate_size": 32,
            "moe_intermediate_size": 8,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "head_dim": 8,
            "rope_scaling": {"rope_type": "default", "mrope_section": [2, 1, 1]},
        },
        vision_config={
            "depth": 1,
            "hidden_size": 16,
            "intermediate_size": 32,
            "num_heads": 2,
            "patch_size": 8,
            "out_hidden_size": 16,
            "num_position_embeddings": 16,
            "deepstack_visual_indexes": [0],
        },
    )
    torch.manual_seed(4)
    transformers.Qwen3VLMoeForConditionalGeneration(config).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("weights", LOADINGS)
@pytest.mark.parametrize("make", [make_paligemma, make_qwen3_vl_moe])
def test_tied_and_merged_weights_are_those_of_transformers(tmp_path, make, weights) -> None:
    """
    Those that it computes with come with their numbers, and the rest does not.
    """
    folder = make(tmp_path)
    config = transformers.AutoConfig.from_pretrained(folder)
    expected = transformers.AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32)

    model, lazy = _weights.load_by_ourselves(
        folder, config, placed(weights), torch.device("cpu"), dtype=torch.float32
    )

    assert [] == differences(model, expected)
    tied = expected.get_output_embeddings().weight is expected.get_input_embeddings().weight
    assert tied is (model.get_output_embeddings().weight is model.get_input_embeddings().weight)
    assert (lazy is not None) is (weights is WeightLoading.LAZY)


@pytest.mark.parametrize("weights", LOADINGS)
def test_the_embedded_model_answers_the_same_however_its_weights_come(weights) -> None:
    """
    Also with a budget of a third of its size, and after it was closed and loaded again.
    """
    size = (model_directory() / "model.safetensors").stat().st_size
    options = {"weights_budget_bytes": size // 3} if weights is WeightLoading.LAZY else {}
    prompt = Prompt(text="What is in this image?", images=(load_image(sample_scene_path()),))
    asked = GenerationOptions(max_new_tokens=24)
    with load_predictor("embedded", device="cpu", dtype="float16") as predictor:
        expected = predictor.generate(prompt, asked).text

    for _ in range(2):
        with load_predictor(
            "embedded", device="cpu", dtype="float16", weights=weights.value, **options
        ) as predictor:
            assert expected == predictor.generate(prompt, asked).text


def packed_copy(folder: Path, target: Path) -> Path:
    """Copy the folder of a model, with a pack in the place of its weights."""
    shutil.copytree(folder, target)
    pack(target / "model.safetensors", target / "model.flashpack")
    (target / "model.safetensors").unlink()
    return target


def test_a_folder_with_a_pack_is_loaded(tiny_model, tmp_path) -> None:
    """
    Beside the configuration; transformers by itself does not read it, and that is said.
    """
    folder = packed_copy(tiny_model("smolvlm"), tmp_path / "packed")
    expected = opened(tiny_model("smolvlm"), Placement(device="cpu")).model

    for weights in LOADINGS:
        assert [] == differences(opened(folder, placed(weights)).model, expected)
    assert estimate_bytes(resolve_model(folder), placed(WeightLoading.MAPPED)) > 0
    with pytest.raises(UnsupportedModelError, match=r"are a pack .* weights='mapped' does"):
        opened(folder, Placement(device="cpu"))


def test_a_pack_that_is_damaged_is_an_error_of_the_model(tiny_model, tmp_path) -> None:
    """
    With the model's name.
    """
    folder = packed_copy(tiny_model("smolvlm"), tmp_path / "packed")
    data = (folder / "model.flashpack").read_bytes()
    (folder / "model.flashpack").write_bytes(data[:-1])

    with pytest.raises(ModelError, match=r"model\.flashpack"):
        opened(folder, placed(WeightLoading.MAPPED))


def test_a_lazy_model_whose_file_changes_says_so_when_it_answers(tiny_model, tmp_path) -> None:
    """
    As an error of generating, with what happened.
    """
    shutil.copytree(tiny_model("llava"), tmp_path / "m")
    file = tmp_path / "m" / "model.safetensors"
    data = file.read_bytes()
    file.unlink()
    file.write_bytes(data)
    lazily = {"weights": "lazy", "weights_budget_bytes": 1 << 20}

    with load_predictor(tmp_path / "m", device="cpu", **lazily) as predictor:
        file.write_bytes(data[:-1])

        with pytest.raises(GenerationError, match=r"its weights cannot be read: .* and had"):
            predictor.generate(Prompt(text="What is this?"))


@pytest.mark.parametrize("weights", LOADINGS)
def test_weights_that_are_missing_are_an_error_however_they_come(
    tiny_model, tmp_path, weights
) -> None:
    """
    And not random numbers.
    """
    shutil.copytree(tiny_model("llava"), tmp_path / "m")
    file = tmp_path / "m" / "model.safetensors"
    left = {n: t for n, t in load_file(file).items() if "down_proj" not in n}
    file.unlink()
    save_file(left, file, {"format": "pt"})

    with pytest.raises(ModelError, match="its files lack 2 of its weights, as '"):
        opened(tmp_path / "m", placed(weights))


def test_a_budget_that_is_too_small_for_a_model_is_an_error_of_the_model(tiny_model) -> None:
    """
    With what is needed.
    """
    with pytest.raises(ModelMemoryError) as error:
        opened(tiny_model("llava"), placed(WeightLoading.LAZY, budget=1000))

    assert error.value.needed_bytes > 1000


def test_a_lazy_model_takes_its_budget_and_gives_it_back(tiny_model) -> None:
    """
    That is what the residency counts.
    """
    model = opened(tiny_model("llava"), placed(WeightLoading.LAZY, budget=100_000))
    lazy = model.lazy

    assert 100_000 == model.nbytes
    assert 100_000 == estimate_bytes(
        resolve_model(tiny_model("llava")), placed(WeightLoading.LAZY, budget=100_000)
    )

    model.free()

    assert (0, 0) == (lazy.pool.resident_bytes, model.nbytes)


def test_quantized_weights_are_loaded_by_transformers_only(tiny_model, tmp_path) -> None:
    """
    Whether they are quantized while they load, or were when they were stored.
    """
    with pytest.raises(ContractError, match="weights are quantized while it loads them"):
        placed(WeightLoading.MAPPED, memory=MemoryMode.NF4)
    shutil.copytree(tiny_model("llava"), tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text(encoding="utf-8"))
    config["quantization_config"] = {"quant_method": "fp8"}
    (tmp_path / "m" / "config.json").unlink()
    (tmp_path / "m" / "config.json").write_text(json.dumps(config), encoding="utf-8")

    with pytest.raises(UnsupportedModelError, match="does not load quantized weights"):
        opened(tmp_path / "m", placed(WeightLoading.COPIED))


def test_mapped_weights_are_of_the_cpu_only() -> None:
    """
    And our own ways need a transformers that tells where weights go.
    """
    device = torch.device("cuda")

    with pytest.raises(UnsupportedModelError, match="is for the CPU, and it would run on cuda"):
        _weights.require_loadable("m", {}, placed(WeightLoading.MAPPED), device)
    _weights.require_loadable("m", {}, placed(WeightLoading.COPIED), device)


def test_an_old_transformers_is_named(monkeypatch) -> None:
    """
    With its version, before anything is read.
    """
    monkeypatch.setattr(_weights.transformers, "__version__", "4.57.6")

    with pytest.raises(UnsupportedModelError, match=r"needs transformers 5, and 4\.57\.6 is"):
        _weights.require_loadable("m", {}, placed(WeightLoading.COPIED), torch.device("cpu"))


@pytest.mark.parametrize(
    ("weights", "budget"),
    [("lazy", None), ("mapped", 5), ("lazy", 0), ("lazy", "1 GB"), ("fast", None)],
)
def test_what_contradicts_itself_is_refused_before_anything_is_loaded(weights, budget) -> None:
    """
    A budget is for weights that come and go, and they need one.
    """
    with pytest.raises(ContractError, match="weights"):
        load_predictor("embedded", weights=weights, weights_budget_bytes=budget)
