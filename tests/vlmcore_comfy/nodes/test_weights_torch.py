"""The node that opens weights: what it offers, what it reads, and what it refuses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from comfyui.stub import Interrupted, StubComfyUI, stubbed
from vlmcore.errors import ContractError, CorruptWeightsError, WeightChecksumError
from vlmcore.weights.packing import pack
from vlmcore.weights.writing import write_safetensors
from vlmcore_comfy.hosting import ALONE, DiffusionWeights
from vlmcore_comfy.nodes.weights import load_diffusion_model
from vlmcore_comfy.weight_files import weight_names

torch = pytest.importorskip("torch")

CHECK_ALL = "Check all of it against the manifest"


@pytest.fixture
def comfyui(tmp_path: Path) -> Iterator[StubComfyUI]:
    with stubbed(tmp_path) as stub:
        yield stub


@pytest.fixture
def tensors() -> dict[str, Any]:
    torch.manual_seed(0)
    return {"head.modulation": torch.randn(1, 2, 8), "blocks.0.weight": torch.randn(8, 8)}


@pytest.fixture(autouse=True)
def folder(comfyui: StubComfyUI, tensors: dict[str, Any]) -> Path:
    """The folder of diffusion models, with one in safetensors and one in a pack."""
    folder = comfyui.folder / "models" / "diffusion_models"
    folder.mkdir(parents=True)
    write_safetensors(tensors, folder / "tiny.safetensors", metadata={"config": "{}"})
    pack(folder / "tiny.safetensors", folder / "tiny.flashpack")
    return folder


def load(stub: StubComfyUI, model_file: str, kept_as: str = "default", checks: str = "") -> Any:
    kind = stub.door["extension"].comfy_class(load_diffusion_model)
    checks = checks or "Do not check"
    queued = kind.execute(model_file=model_file, weight_dtype=kept_as, checksums=checks)
    return asyncio.run(asyncio.wait_for(queued, 60)).values


@pytest.mark.parametrize("name", ["tiny.flashpack", "tiny.safetensors"])
def test_a_file_becomes_a_model_with_the_tensors_that_it_holds(
    comfyui: StubComfyUI, tensors: dict[str, Any], name: str
) -> None:
    model, report = load(comfyui, name, checks=CHECK_ALL if "pack" in name else "")
    assert tensors.keys() == model.tensors.keys()
    assert all(torch.equal(tensors[name], model.tensors[name]) for name in tensors)
    said = json.loads(report)
    assert (name, 2, 320) == (said["path"], said["tensors"], said["payload_bytes"])
    assert comfyui.progress[-1] == (320, 320)


def test_what_safetensors_say_beside_is_handed_on(comfyui: StubComfyUI) -> None:
    """
    Some models are told by that.
    """
    model, _ = load(comfyui, "tiny.safetensors")
    assert {"config": "{}"} == model.metadata


def test_a_comfyui_that_knows_of_no_metadata_is_given_none(
    comfyui: StubComfyUI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    As 0.3.64.
    """
    sd = comfyui.door["diffusion"].comfy.sd
    made = sd.load_diffusion_model_state_dict
    monkeypatch.setattr(
        sd,
        "load_diffusion_model_state_dict",
        lambda sd, model_options: made(sd, model_options, None),
    )
    model, _ = load(comfyui, "tiny.safetensors")
    assert model.metadata is None


@pytest.mark.parametrize(
    ("kept_as", "options"),
    [
        ("default", {}),
        ("fp8_e4m3fn", {"dtype": torch.float8_e4m3fn}),
        ("fp8_e4m3fn_fast", {"dtype": torch.float8_e4m3fn, "fp8_optimizations": True}),
        ("fp8_e5m2", {"dtype": torch.float8_e5m2}),
    ],
)
def test_weights_are_kept_as_the_own_loader_of_comfyui_would(
    comfyui: StubComfyUI, kept_as: str, options: dict[str, Any]
) -> None:
    model, _ = load(comfyui, "tiny.flashpack", kept_as)
    assert options == model.options


def test_comfyui_may_make_the_model_again(comfyui: StubComfyUI) -> None:
    """
    Where it wants a copy for another device, or one without its dynamic memory.
    """
    model, _ = load(comfyui, "tiny.flashpack")
    make, arguments = model.cached_patcher_init
    again = make(*arguments, disable_dynamic=True)
    assert again is not model
    assert {"disable_dynamic": True} == again.more


def test_the_page_offers_the_files_that_are_there_now(comfyui: StubComfyUI, folder: Path) -> None:
    """
    Also in folders below; without the parts of a checkpoint that has an index, and without others.
    """
    kind = comfyui.door["extension"].comfy_class(load_diffusion_model)

    def offered() -> list[str]:
        (model_file, *_) = kind.define_schema().inputs
        names: list[str] = model_file.extra_dict["options"]
        return names

    assert ["tiny.flashpack", "tiny.safetensors"] == offered()
    for name in ("b/m-00001-of-00002.safetensors", "b/m.safetensors.index.json", "b/notes.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "x.flashpack").touch()
    assert ["b/m.safetensors.index.json", "tiny.flashpack", "tiny.safetensors"] == offered()


def test_folders_that_lead_into_each_other_are_read_once(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "a" / "x.flashpack").touch()
    (root / "a" / "up").symlink_to(root)
    assert ["a/x.flashpack"] == weight_names([root, root / "missing"])


@pytest.mark.parametrize(
    "name", ["", "tiny.flashpak", "../secret.flashpack", "/etc/passwd", "tiny.flashpack\n", "\0"]
)
def test_a_graph_opens_nothing_but_what_is_offered(
    comfyui: StubComfyUI, folder: Path, name: str
) -> None:
    (folder.parent / "secret.flashpack").write_bytes((folder / "tiny.flashpack").read_bytes())
    with pytest.raises(ContractError, match=r"model_file.* expected a file of weights in "):
        load(comfyui, name)


def test_a_name_that_is_nearly_right_is_told(comfyui: StubComfyUI) -> None:
    with pytest.raises(ContractError, match=r"did you mean 'tiny\.flashpack'"):
        load(comfyui, "tiny.flashpak")


def test_a_file_that_is_cut_off_is_told_before_anything_is_made(
    comfyui: StubComfyUI, folder: Path
) -> None:
    whole = (folder / "tiny.flashpack").read_bytes()
    (folder / "cut.flashpack").write_bytes(whole[:-9])
    with pytest.raises(CorruptWeightsError, match=r"cut\.flashpack"):
        load(comfyui, "cut.flashpack")
    assert not comfyui.diffusion


def test_a_flipped_byte_is_found_where_it_is_looked_for(comfyui: StubComfyUI, folder: Path) -> None:
    data = bytearray((folder / "tiny.flashpack").read_bytes())
    data[5] ^= 1
    (folder / "tiny.flashpack").write_bytes(data)
    with pytest.raises(WeightChecksumError):
        load(comfyui, "tiny.flashpack", checks=CHECK_ALL)
    assert not comfyui.diffusion


def test_weights_of_no_model_of_comfyui_are_told(comfyui: StubComfyUI, folder: Path) -> None:
    write_safetensors({"a": torch.zeros(2)}, folder / "other.safetensors")
    with pytest.raises(ContractError, match=r"other\.safetensors: is no diffusion model that this"):
        load(comfyui, "other.safetensors")


def test_a_graph_that_is_stopped_opens_no_model(comfyui: StubComfyUI) -> None:
    comfyui.is_interrupted = True
    with pytest.raises(Interrupted):
        load(comfyui, "tiny.flashpack")
    assert not comfyui.diffusion


def test_a_program_is_told_that_only_comfyui_makes_models() -> None:
    """
    And that none of its folders are known.
    """
    with pytest.raises(ContractError, match="expected a file of weights in no folder"):
        load_diffusion_model("tiny.flashpack", "default", "Do not check")
    with pytest.raises(ContractError, match="within ComfyUI only"):
        ALONE.diffusion_model(lambda: DiffusionWeights({}, {}), name="m", kept_as="default")
