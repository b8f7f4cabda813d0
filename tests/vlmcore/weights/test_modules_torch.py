"""Weights into modules: every dtype and way, all or nothing, tied, buffers, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn.utils import parametrizations, parametrize

from vlmcore.errors import (
    ContractError,
    WeightChecksumError,
    WeightMismatchError,
    WeightsBudgetError,
    WeightsCancelledError,
    WeightsError,
)
from vlmcore.weights import _arena, modules
from vlmcore.weights._torch import reading
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.dtypes import DType
from vlmcore.weights.lazy import load_lazily
from vlmcore.weights.modules import load_into, load_tensors
from vlmcore.weights.opening import open_files
from vlmcore.weights.ranges import RangeReader
from vlmcore.weights.report import Way
from vlmcore.weights.verifying import Verification
from vlmcore.weights.writing import write_pack

SMALL = ReadBudget(staging_bytes=1 << 20, readers=2, chunk_bytes=1 << 16)
WRITTEN = [dtype for dtype in DType if dtype.safetensors]


class Tied(nn.Module):
    """A model with a tied head, buffers of both kinds, and a scalar."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 6)
        self.norm = nn.BatchNorm1d(6)
        self.head = nn.Linear(6, 11, bias=False)
        self.head.weight = self.embed.weight
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.register_buffer("steps", torch.arange(3.0), persistent=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.embed(ids))) * self.scale


@pytest.fixture
def tied(tmp_path) -> tuple[Tied, Path]:
    """A model and the file of its weights, in which the tied one has one of its names."""
    torch.manual_seed(3)
    model = Tied().eval()
    weights = {name: t.clone() for name, t in model.state_dict().items() if name != "head.weight"}
    save_file(weights, tmp_path / "tied.safetensors")
    return model, tmp_path / "tied.safetensors"


def skeleton() -> Tied:
    with torch.device("meta"):
        return Tied().eval()


def of_bytes(dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    """Make a tensor of any bytes at all; those of bool are 0 and 1."""
    high = 2 if dtype is torch.bool else 256
    raw = torch.randint(0, high, (math.prod(shape) * dtype.itemsize,), dtype=torch.uint8)
    return raw.view(dtype).reshape(shape)


def bits(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.contiguous().reshape(-1).view(torch.uint8).tolist())


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("dtype", WRITTEN, ids=lambda dtype: dtype.value)
def test_every_dtype_comes_bit_by_bit(tmp_path, way, dtype) -> None:
    """
    Also scalars, which stay without axes, and tensors without numbers.
    """
    kind = getattr(torch, dtype.value)
    shapes = {"scalar": (), "none": (0, 3), "matrix": (5, 7), "odd": (3,)}
    written = {name: of_bytes(kind, shape) for name, shape in shapes.items()}
    save_file(written, tmp_path / "w.safetensors")

    loaded = load_tensors(tmp_path / "w.safetensors", way=way)

    assert {name: (kind, shape, bits(written[name])) for name, shape in shapes.items()} == {
        name: (tensor.dtype, tuple(tensor.shape), bits(tensor)) for name, tensor in loaded.items()
    }


@pytest.mark.parametrize("way", Way)
def test_writing_to_a_weight_never_reaches_the_file(tmp_path, way) -> None:
    """
    Mapped weights are this process's own: writing is no crash, and nobody else sees it.
    """
    path = tmp_path / "w.safetensors"
    save_file({"a": torch.zeros(4096), "b": torch.ones(3)}, path)
    before = path.read_bytes()

    loaded = load_tensors(path, way=way)
    loaded["a"].add_(1)
    loaded["b"].zero_()

    assert before == path.read_bytes()
    assert 4096 == loaded["a"].sum().item()
    assert [1, 1, 1] == load_tensors(path, way=way)["b"].tolist()


def test_copies_start_at_multiples_of_64_bytes(tmp_path) -> None:
    """
    Vector instructions want that, and files do not promise it.
    """
    weights = {f"w{i}": torch.ones(2 * i + 1, dtype=torch.uint8) for i in range(20)}
    save_file(weights, tmp_path / "w.safetensors")

    loaded = load_tensors(tmp_path / "w.safetensors", way=Way.COPY)

    assert {0} == {tensor.data_ptr() % 64 for tensor in loaded.values()}


def test_tensors_outlive_the_load(tmp_path) -> None:
    """
    A mapping lives as long as a tensor of it does; the file may be gone.
    """
    save_file({"a": torch.arange(5)}, tmp_path / "w.safetensors")

    tensor = load_tensors(tmp_path / "w.safetensors")["a"]
    (tmp_path / "w.safetensors").unlink()

    assert [0, 1, 2, 3, 4] == tensor.tolist()


@pytest.mark.parametrize("way", Way)
def test_floats_are_converted_on_request_and_nothing_else_is(tmp_path, way) -> None:
    """
    As torch converts them; whole numbers and truth values are left alone.
    """
    torch.manual_seed(0)
    half = torch.randn(300, 700).to(torch.bfloat16)
    written = {"f": half, "i": torch.arange(9), "b": torch.tensor([True, False])}
    save_file(written, tmp_path / "w.safetensors")

    loaded = load_tensors(tmp_path / "w.safetensors", dtype="float32", way=way, budget=SMALL)

    assert torch.equal(half.float(), loaded["f"])
    assert (torch.int64, torch.bool) == (loaded["i"].dtype, loaded["b"].dtype)


@pytest.mark.parametrize("way", Way)
def test_a_skeleton_is_filled(tied, way) -> None:
    """
    A module on the meta device answers as the one that was saved.
    """
    model, path = tied
    empty = skeleton()
    empty.register_buffer("steps", torch.arange(3.0), persistent=False)

    report = load_into(empty, path, way=way)

    ids = torch.tensor([[1], [7]]).reshape(2)
    assert torch.equal(model(ids), empty(ids))
    assert ((), (), ()) == (report.missing, report.unused, report.left_on_meta)
    assert (way, 7, "cpu") == (report.way, report.tensors, report.device)
    assert path.stat().st_size > report.payload_bytes > 0


def test_what_is_tied_stays_tied(tied) -> None:
    """
    The file has one of the names, and both stay one parameter that counts once.
    """
    _, path = tied
    empty = skeleton()

    report = load_into(empty, path)

    assert empty.head.weight is empty.embed.weight
    assert ("embed.weight",) == report.tied


def test_a_file_with_all_names_of_a_tied_weight_is_taken(tied, tmp_path) -> None:
    """
    Some writers write each name; the values are the same, so nothing is lost.
    """
    model, _ = tied
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    save_file(weights, tmp_path / "both.safetensors")
    empty = skeleton()

    load_into(empty, tmp_path / "both.safetensors")

    assert empty.head.weight is empty.embed.weight
    assert torch.equal(model.head.weight, empty.head.weight)


def test_two_values_for_a_tied_weight_are_refused(tied, tmp_path) -> None:
    """
    One of them would be lost without a word.
    """
    model, _ = tied
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    weights["head.weight"][0, 0] += 1
    save_file(weights, tmp_path / "both.safetensors")

    with pytest.raises(WeightMismatchError, match=r"other values than those of 'embed\.weight'"):
        load_into(skeleton(), tmp_path / "both.safetensors")


def test_one_memory_in_the_file_is_no_tie_in_the_module(tmp_path) -> None:
    """
    Weights that are not tied in the module do not change with each other.
    """
    path = tmp_path / "w.safetensors"
    save_file({"0.weight": torch.ones(2, 2), "1.weight": torch.ones(2, 2)}, path)
    with torch.device("meta"):
        module = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    load_into(module, path)

    with torch.no_grad():
        module[0].weight.zero_()

    assert 4 == module[1].weight.sum().item()


def test_buffers_that_no_file_holds_are_named(tied) -> None:
    """
    Those on the meta device hold no numbers after the load either: the caller fills them.
    """
    _, path = tied
    empty = skeleton()

    report = load_into(empty, path)

    assert ("steps",) == report.left_on_meta
    assert torch.equal(torch.tensor(0), empty.norm.num_batches_tracked)


def test_all_names_that_differ_are_told_at_once(tied) -> None:
    """
    Missing ones and those without a place, and no shape is looked at before.
    """
    _, path = tied
    with torch.device("meta"):
        other = nn.ModuleDict({"embed": nn.Embedding(3, 3), "tail": nn.Linear(2, 2)})

    with pytest.raises(WeightMismatchError) as error:
        load_into(other, path)

    assert ("tail.weight", "tail.bias") == error.value.missing
    assert {"scale", "norm.weight"} <= set(error.value.unused)
    assert () == error.value.mismatched


def test_names_that_differ_are_reported_where_that_is_allowed(tied) -> None:
    """
    With ``strict=False`` the rest is loaded.
    """
    model, path = tied
    module = nn.ModuleDict({"embed": nn.Embedding(11, 6), "tail": nn.Linear(2, 2)})

    report = load_into(module, path, strict=False)

    assert ("tail.weight", "tail.bias") == report.missing
    assert "scale" in report.unused
    assert torch.equal(model.embed.weight, module["embed"].weight)


@pytest.mark.parametrize("strict", [True, False])
def test_all_shapes_that_differ_are_told_before_anything_is_assigned(tied, strict) -> None:
    """
    Whether strict or not: weights of another shape are of another model.
    """
    _, path = tied
    with torch.device("meta"):
        other = Tied()
        other.embed = nn.Embedding(12, 6)
        other.head.weight = other.embed.weight
        other.norm = nn.BatchNorm1d(7)

    with pytest.raises(WeightMismatchError) as error:
        load_into(other, path, strict=strict)

    assert ("embed.weight", "got shape [11, 6], expected [12, 6]") == error.value.mismatched[0]
    assert 5 == len(error.value.mismatched)
    assert all(tensor.is_meta for tensor in other.state_dict().values())


def test_dtypes_must_be_the_same_unless_conversion_is_asked_for(tied) -> None:
    """
    Nothing is rounded without being asked for, and the error says how to ask.
    """
    model, path = tied

    with pytest.raises(
        WeightMismatchError, match=r"got float32, expected float16 \(dtype='module'"
    ):
        load_into(skeleton().half(), path)

    half, stored = skeleton().half(), skeleton().half()
    report = load_into(half, path, dtype="module")
    load_into(stored, path, dtype="file")
    asked = skeleton()
    load_into(asked, path, dtype=torch.bfloat16)

    assert torch.equal(model.embed.weight.half(), half.embed.weight)
    assert "embed.weight" in report.converted
    assert "norm.num_batches_tracked" not in report.converted
    assert torch.float32 == stored.embed.weight.dtype
    assert (torch.bfloat16, torch.int64) == (
        asked.scale.dtype,
        asked.norm.num_batches_tracked.dtype,
    )


def test_whole_numbers_are_never_rounded(tmp_path) -> None:
    """
    A module that wants floats does not get whole numbers, whatever was asked for.
    """
    save_file({"weight": torch.ones(2, 2, dtype=torch.int64)}, tmp_path / "w.safetensors")

    for dtype in ("module", torch.float32):
        with pytest.raises(WeightMismatchError, match="got int64, expected float32"):
            load_into(nn.Linear(2, 2, bias=False), tmp_path / "w.safetensors", dtype=dtype)


def test_a_load_that_fails_midway_leaves_the_module_as_it_was(tied) -> None:
    """
    All or nothing: no half model, whatever refuses its weight.
    """

    class Stubborn(nn.Linear):
        def __setattr__(self, name: str, value: object) -> None:
            if name == "weight" and "weight" in self._parameters and not value.is_meta:
                raise RuntimeError("I do not want that")
            super().__setattr__(name, value)

    _, path = tied
    model = skeleton()
    with torch.device("meta"):
        model.head = Stubborn(6, 11, bias=False)
    shared = model.embed.weight
    save_file({**load_tensors(path), "head.weight": torch.ones(11, 6)}, path)

    with pytest.raises(RuntimeError, match="I do not want that"):
        load_into(model, path)

    assert all(tensor.is_meta for tensor in model.state_dict().values())
    assert model.embed.weight is shared


def test_a_load_that_is_cancelled_leaves_the_module_as_it_was(tied) -> None:
    """
    Cancelling is an error like others.
    """

    class Cancelled:
        cancelled = True

    _, path = tied
    model = skeleton()

    for way in Way:
        with pytest.raises(WeightsCancelledError):
            load_into(model, path, way=way, cancel=Cancelled())
        with pytest.raises(WeightsCancelledError):
            load_into(model, path, way=way, dtype=torch.float64, cancel=Cancelled())

    assert model.embed.weight.is_meta


def test_parameters_that_hold_numbers_stay_the_objects_that_they_are(tied) -> None:
    """
    An optimizer that was made before goes on with the weights that were loaded.
    """
    model, path = tied
    other = Tied()
    parameters = list(other.parameters())
    other.head.weight.requires_grad_(requires_grad=False)

    load_into(other, path)

    assert all(a is b for a, b in zip(parameters, other.parameters(), strict=True))
    assert torch.equal(model.embed.weight, parameters[1])
    assert not other.embed.weight.requires_grad
    assert other.scale.requires_grad


def test_a_module_with_parametrizations_is_loaded_by_its_own_names(tmp_path) -> None:
    """
    What a parametrization computes is computed from what was loaded.
    """
    torch.manual_seed(1)
    model = parametrizations.weight_norm(nn.Linear(3, 4))
    save_file(model.state_dict(), tmp_path / "w.safetensors")
    other = parametrizations.weight_norm(nn.Linear(3, 4))

    load_into(other, tmp_path / "w.safetensors")

    assert parametrize.is_parametrized(other)
    assert torch.equal(model.weight, other.weight)


def test_a_compiled_module_is_the_module_that_was_compiled(tied) -> None:
    """
    Names do not begin with what ``torch.compile`` puts before them.
    """
    _, path = tied
    model = skeleton()

    load_into(torch.compile(model, backend="eager"), path)

    assert not model.embed.weight.is_meta


@pytest.mark.parametrize("kind", ["subclass", "extra", "lazy", "none"])
def test_modules_that_keep_weights_in_a_form_of_their_own_are_refused(tmp_path, kind) -> None:
    """
    As quantized ones do: bytes that are given to them as weights would be nonsense.
    """

    class Packed(nn.Parameter):
        pass

    class Extra(nn.Linear):
        def get_extra_state(self) -> torch.Tensor:
            return torch.ones(1)

    save_file({"weight": torch.ones(2, 2)}, tmp_path / "w.safetensors")
    module, words = {
        "subclass": (nn.Linear(2, 2, bias=False), "of the kind Packed, expected a plain one"),
        "extra": (Extra(2, 2, bias=False), "in a form of its own"),
        "lazy": (nn.LazyLinear(2, bias=False), "without a shape"),
        "none": ("weights", "got str, expected a torch.nn.Module"),
    }[kind]
    if kind == "subclass":
        module.weight = Packed(torch.ones(2, 2))

    with pytest.raises(ContractError, match=words):
        load_into(module, tmp_path / "w.safetensors")


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_quantized_modules_are_refused(tmp_path) -> None:
    """
    Those of torch itself keep their weights packed.
    """
    save_file({"weight": torch.ones(2, 2)}, tmp_path / "w.safetensors")
    module = torch.ao.nn.quantized.dynamic.Linear(2, 2)

    with pytest.raises(ContractError, match="in a form of its own"):
        load_into(module, tmp_path / "w.safetensors", strict=False)


def test_weights_that_are_called_otherwise_are_found_by_a_table(tmp_path) -> None:
    """
    The table says what the module calls a weight of the file.
    """
    save_file({"old.w": torch.ones(2, 2)}, tmp_path / "w.safetensors")
    module = nn.Linear(2, 2, bias=False)

    load_into(module, tmp_path / "w.safetensors", names={"old.w": "weight"})

    assert 4 == module.weight.sum().item()


@pytest.mark.parametrize("device", ["meta", "cuda:99", "toaster", 5.5])
def test_a_device_that_is_not_here_is_refused_first(tied, device) -> None:
    """
    Before the file is looked at.
    """
    with pytest.raises(ContractError, match="device: got"):
        load_into(skeleton(), tied[1], device=device)


def test_views_are_of_the_cpu_only() -> None:
    """
    Whoever asks for views elsewhere learns so, and gets no silent copy.
    """
    with pytest.raises(ContractError, match="got views on cuda, expected copy"):
        modules._way(Way.VIEWS, torch.device("cuda"))
    assert Way.COPY is modules._way(None, torch.device("cuda"))


@pytest.mark.parametrize("way", list(Way)[:2])
def test_progress_is_of_the_whole_though_some_of_it_is_converted(tmp_path, way) -> None:
    """
    What is converted and what is not are read one after the other; the bytes are told once.
    """
    written = {"f": torch.ones(300, 700, dtype=torch.bfloat16), "i": torch.arange(50_000)}
    save_file(written, tmp_path / "w.safetensors")
    told: list[tuple[int, int]] = []

    load_tensors(
        tmp_path / "w.safetensors",
        dtype="float32",
        way=way,
        budget=SMALL,
        progress=lambda done, total: told.append((done, total)),
    )

    assert {820_000} == {total for _, total in told}
    assert 820_000 == told[-1][0]
    assert sorted(told) == told


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_whole_numbers_are_no_weight_that_has_a_gradient(tmp_path, device) -> None:
    """
    Found with all dtypes, before the first is read; a frozen weight may be whole numbers.
    """
    save_file({"weight": torch.ones(2, 2, dtype=torch.int32)}, tmp_path / "w.safetensors")
    module = nn.Linear(2, 2, bias=False, device=device)
    before = module.weight

    with pytest.raises(WeightMismatchError, match="got int32, expected float32"):
        load_into(module, tmp_path / "w.safetensors", dtype="file")
    assert before is module.weight

    module.weight.requires_grad = False
    load_into(module, tmp_path / "w.safetensors", dtype="file")
    assert [[1, 1], [1, 1]] == module.weight.tolist()


def test_a_dtype_that_is_none_is_refused(tied) -> None:
    """
    Whole numbers are no dtype for weights, and neither are words of nobody's.
    """
    for dtype in ("int8", "wide", 5, torch.int64):
        with pytest.raises(ContractError, match="expected a floating-point dtype"):
            load_into(skeleton(), tied[1], dtype=dtype)
        with pytest.raises(ContractError, match="expected a floating-point dtype"):
            load_tensors(tied[1], dtype=dtype)


def test_only_what_is_asked_for_is_read(tied) -> None:
    """
    By name; a name that is not there is an error.
    """
    assert ["scale"] == list(load_tensors(tied[1], names=["scale"]))
    with pytest.raises(ContractError, match="got 'gone', which"):
        load_tensors(tied[1], names=["gone"])
    with pytest.raises(ContractError, match="expected several names"):
        load_tensors(tied[1], names="scale")


def test_a_missing_file_is_our_error(tmp_path) -> None:
    """
    As for arrays.
    """
    with pytest.raises(WeightsError):
        load_into(skeleton(), tmp_path / "gone.safetensors")


@pytest.mark.parametrize("dtype", [None, "float64"])
@pytest.mark.parametrize("way", Way)
def test_a_bit_that_flipped_is_found_by_name_and_the_module_left_as_it_was(
    tmp_path, way, dtype
) -> None:
    """
    However weights come, and whether they are converted on their way.
    """
    path = pack_with_a_flip(tmp_path)
    with torch.device("meta"):
        module = nn.ModuleDict({name: nn.Linear(700, 90, bias=False) for name in "ab"})

    load_into(module, path, way=way, dtype=dtype)
    with torch.device("meta"):
        module = nn.ModuleDict({name: nn.Linear(700, 90, bias=False) for name in "ab"})
    with pytest.raises(WeightChecksumError) as error:
        load_into(module, path, way=way, dtype=dtype, verification=Verification.WHOLE, budget=SMALL)

    assert ("b.weight",) == error.value.tensors
    assert module["a"].weight.is_meta


def test_a_lazy_weight_is_compared_when_it_comes(tmp_path) -> None:
    """
    Each time: the one that is right is used, the other never.
    """
    path = pack_with_a_flip(tmp_path)
    module = nn.ModuleDict({name: nn.Linear(700, 90, bias=False) for name in "ab"})

    with load_lazily(module, path, pool=1 << 20, verification=Verification.WHOLE):
        assert 90 == module["a"].weight.sum(0)[0]
        with pytest.raises(WeightChecksumError):
            module["b"].weight.sum()


@pytest.mark.parametrize("dtype", [None, "float64"])
def test_what_was_compared_is_reported(tmp_path, dtype) -> None:
    """
    In bytes, by whatever way; tensors without numbers are compared too.
    """
    write_pack(
        {"w": np.ones((9, 3), np.float32), "none": np.ones((0, 2), np.float32)}, tmp_path / "m"
    )

    loaded = load_tensors(
        tmp_path / "m", way=Way.COPY, dtype=dtype, verification=Verification.WHOLE
    )

    assert 108 == loaded.report.verified_bytes
    assert {"w": (9, 3), "none": (0, 2)} == {n: tuple(t.shape) for n, t in loaded.items()}


def pack_with_a_flip(folder: Path) -> Path:
    """Write a pack with its manifest, and flip a bit of one weight afterwards."""
    ones = np.ones((90, 700), np.float32)
    written = write_pack({"a.weight": ones, "b.weight": ones}, folder / "m.flashpack")
    with open_files(written.path) as files:
        place = files.index["b.weight"].stop - 1
    data = bytearray(Path(written.path).read_bytes())
    data[place] ^= 1
    Path(written.path).write_bytes(data)
    return Path(written.path)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_weight_that_is_a_part_of_another_is_refused(device: str, tmp_path: Path) -> None:
    """
    Each would get memory of its own, and what was one would be two from then on, in silence.
    """
    module = nn.Module()
    whole = torch.zeros(10, device=device)
    module.whole, module.part = nn.Parameter(whole), nn.Parameter(whole[2:5])
    path = write_pack({"whole": np.ones(10, "f4"), "part": np.ones(3, "f4")}, tmp_path / "m").path
    with pytest.raises(ContractError, match="part: shares some of its memory with 'whole'"):
        load_into(module, path)
    assert module.part.is_meta or [0, 0, 0] == module.part.tolist()


def test_weights_side_by_side_in_one_memory_are_loaded(tmp_path: Path) -> None:
    """
    As recurrent modules keep theirs on a GPU.
    """
    module = nn.Module()
    memory = torch.zeros(10)
    module.low, module.high = nn.Parameter(memory[:5]), nn.Parameter(memory[5:])
    tensors = {"low": np.ones(5, np.float32), "high": np.full(5, 2, np.float32)}
    load_into(module, write_pack(tensors, tmp_path / "m").path)
    assert (5, 10) == (module.low.sum().item(), module.high.sum().item())


def test_two_weights_for_one_name_are_refused(tmp_path: Path) -> None:
    """
    Which of them it gets would hang on their order in the file.
    """
    module = nn.Linear(2, 1)
    weights = {"weight": np.ones((1, 2), "f4"), "old": np.zeros((1, 2), "f4"), "bias": np.ones(1)}
    path = write_pack(weights, tmp_path / "m.flashpack").path
    with pytest.raises(ContractError, match="names: got two weights for 'weight'"):
        load_into(module, path, strict=False, names={"old": "weight"})


def test_names_are_a_mapping(tmp_path: Path) -> None:
    """
    And no list of some, as of other loaders.
    """
    path = write_pack({"weight": np.ones((1, 2), np.float32)}, tmp_path / "m.flashpack").path
    with pytest.raises(ContractError, match="names: got list"):
        load_into(nn.Linear(2, 1), path, strict=False, names=["weight"])


@pytest.mark.parametrize(
    ("way", "dtype"), [(Way.COPY, None), (Way.COPY, "float64"), (Way.VIEWS, "float64")]
)
def test_what_the_host_has_no_room_for_is_refused_before_anything_is_read(
    tied, way, dtype, monkeypatch
) -> None:
    """
    Linux would grant it, and end the process later; the module is as it was.
    """
    monkeypatch.setattr(_arena, "free_host_bytes", lambda: 400)
    monkeypatch.setattr(RangeReader, "submit", lambda *_: pytest.fail("it was read"))
    monkeypatch.setattr(RangeReader, "read", lambda *_, **__: pytest.fail("it was read"))
    module = skeleton()

    with pytest.raises(WeightsBudgetError, match=r"and the host has 0\.0 MiB free") as error:
        load_into(module, tied[1], way=way, dtype=dtype, budget=SMALL)

    assert 400 == error.value.available_bytes < error.value.needed_bytes
    assert all(tensor.is_meta for tensor in module.state_dict().values())


def test_what_is_mapped_needs_no_room(tied, monkeypatch) -> None:
    """
    Its pages are the file's, and leave when others need the memory.
    """
    monkeypatch.setattr(_arena, "free_host_bytes", lambda: 0)

    load_into(skeleton(), tied[1], budget=SMALL)


@pytest.mark.parametrize("said", ["can't start new thread", "can't allocate memory: you tried to"])
@pytest.mark.parametrize("way", Way)
def test_what_the_host_does_not_grant_midway_leaves_the_module_as_it_was(
    tied, way, said, monkeypatch
) -> None:
    """
    Threads or memory, in the words of Python and of torch: an error of the weights.
    """

    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError(said)

    monkeypatch.setattr(RangeReader, "submit", refuse)
    monkeypatch.setattr(reading, "tensor_over", refuse)
    module = skeleton()

    for dtype in (None, "float64"):
        with pytest.raises(WeightsError, match=r"tied\.safetensors: .* the host"):
            load_into(module, tied[1], way=way, dtype=dtype, budget=SMALL)

    assert all(tensor.is_meta for tensor in module.state_dict().values())
