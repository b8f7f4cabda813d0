"""Modules whose weights come and go: the same answers, within a budget, and what they refuse."""

from __future__ import annotations

import copy
import io
import threading
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from vlmcore.errors import (
    ContractError,
    WeightMismatchError,
    WeightsBudgetError,
    WeightsChangedError,
    WeightsError,
)
from vlmcore.weights.lazy import load_lazily
from vlmcore.weights.pool import WeightPool
from weight_cases import run_child


class Model(nn.Module):
    """Attention that reads weights of its children, a tied head, buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(16, 2, 32, batch_first=True) for _ in range(12)
        )
        self.norm = nn.BatchNorm1d(16)
        self.head = nn.Linear(16, 20, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        hidden = self.embed(ids)
        for layer in self.layers:
            hidden = layer(hidden)
        return self.head(self.norm(hidden.reshape(-1, 16)))


IDS = torch.tensor([[1, 4, 19], [0, 7, 7]])
# What stays, and the largest part beside it: less than a third of the model.
TIGHT = 20_000


@pytest.fixture(autouse=True)
def without_gradients():
    """Answer as a model server does."""
    with torch.inference_mode():
        yield


@pytest.fixture(scope="module")
def full(tmp_path_factory) -> tuple[Model, Path]:
    """A model in memory, and the file of its weights."""
    torch.manual_seed(5)
    model = Model().eval()
    path = tmp_path_factory.mktemp("lazy") / "m.safetensors"
    save_file({n: t for n, t in model.state_dict().items() if n != "head.weight"}, path)
    return model, path


def skeleton() -> Model:
    with torch.device("meta"):
        return Model().eval()


def test_a_budget_of_a_third_of_the_model_gives_the_same_answers(full) -> None:
    """
    Again and again, while what is in memory stays within the budget.
    """
    model, path = full
    empty = skeleton()
    assert 3 * TIGHT < path.stat().st_size

    with load_lazily(empty, path, pool=TIGHT) as weights:
        for _ in range(3):
            assert torch.equal(model(IDS), empty(IDS))

        assert weights.pool.peak_bytes <= TIGHT
        assert weights.pool.loaded_bytes > path.stat().st_size  # some came several times
        assert () == weights.report.left_on_meta


def test_nothing_is_read_before_it_is_needed_but_what_stays(full) -> None:
    """
    Buffers are read at once and stay; the rest says its shape, dtype and device unread.
    """
    model, path = full
    empty = skeleton()

    with load_lazily(empty, path, pool=1 << 20) as weights:
        staying = weights.pool.resident_bytes
        said = [(p.shape, p.dtype, p.device, p.numel()) for p in empty.parameters()]
        empty.to("cpu")
        empty.eval().requires_grad_(requires_grad=False)

        assert [(p.shape, p.dtype, p.device, p.numel()) for p in model.parameters()] == said
        assert staying == weights.pool.resident_bytes
        assert not any(p.is_meta or p.requires_grad for p in empty.parameters())
        assert "in memory only while it is needed" in repr(next(empty.parameters()))


def test_what_is_asked_of_a_weight_itself_is_right(full) -> None:
    """
    Without a forward pass: by its module, from a list of parameters, in a function of torch.
    """
    model, path = full
    empty = skeleton()

    with load_lazily(empty, path, pool=TIGHT):
        named = dict(empty.named_parameters())

        assert torch.equal(model.embed.weight, empty.embed.weight)
        assert torch.equal(model.embed.weight.sum(), named["embed.weight"].sum())
        assert torch.equal(
            torch.cat([model.embed.weight, model.embed.weight]),
            torch.cat([named["embed.weight"], empty.head.weight]),
        )
        assert torch.equal(2 * model.embed.weight, 2 * named["embed.weight"])
        assert torch.float64 == named["embed.weight"].double().dtype
        assert named["embed.weight"] is named["embed.weight"].float()


def test_tied_weights_are_read_once(full) -> None:
    """
    Both names are one weight.
    """
    _, path = full
    empty = skeleton()

    with load_lazily(empty, path, pool=1 << 20) as weights:
        assert empty.head.weight is empty.embed.weight
        assert ("embed.weight",) == weights.report.tied


def test_threads_answer_alike(full) -> None:
    """
    Several calls at once, in a budget for less than one of them.
    """
    model, path = full
    empty = skeleton()
    expected, answers = model(IDS), []

    def answer() -> None:
        with torch.inference_mode():
            answers.extend(torch.equal(expected, empty(IDS)) for _ in range(3))

    with load_lazily(empty, path, pool=TIGHT) as weights:
        threads = [threading.Thread(target=answer) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

        assert [True] * 12 == answers
        assert weights.pool.peak_bytes <= TIGHT


def test_models_are_switched_under_one_budget(full) -> None:
    """
    The one leaves as the other comes, and comes again.
    """
    model, path = full
    pool = WeightPool(2 * TIGHT)
    one, other = skeleton(), skeleton()

    with load_lazily(one, path, pool=pool), load_lazily(other, path, pool=pool):
        for empty in (one, other, other, one):
            assert torch.equal(model(IDS), empty(IDS))

    assert 2 * TIGHT >= pool.peak_bytes
    assert 0 == pool.resident_bytes


def test_recurrent_weights_are_read_at_once(tmp_path) -> None:
    """
    Such modules hold them in a list of their own, where nobody could be told of it.
    """
    model = nn.GRU(8, 8)
    save_file(model.state_dict(), tmp_path / "m")
    with torch.device("meta"):
        empty = nn.GRU(8, 8)

    with load_lazily(empty, tmp_path / "m", pool=1 << 20) as weights:
        torch.testing.assert_close(model(torch.ones(3, 8)), empty(torch.ones(3, 8)))

        assert 4 * sum(p.numel() for p in model.parameters()) == weights.pool.resident_bytes


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_weights_are_converted_when_they_come(full, dtype) -> None:
    """
    To the dtype that was asked for, as a full load converts them.
    """
    model, path = full
    empty = skeleton()
    converted = copy.deepcopy(model).to(dtype)

    with load_lazily(empty, path, pool=2 * TIGHT, dtype=dtype):
        assert torch.equal(converted(IDS), empty(IDS))


def test_a_copy_is_whole_and_lazy_no_more(full) -> None:
    """
    Of a model in memory, with its ties; also one that was saved.
    """
    model, path = full
    empty = skeleton()

    with load_lazily(empty, path, pool=TIGHT):
        copied = copy.deepcopy(empty)
        state = empty.state_dict()
        saved = io.BytesIO()
        torch.save(empty, saved)
    saved.seek(0)

    assert copied.head.weight is copied.embed.weight
    assert torch.equal(model(IDS), copied(IDS))
    assert torch.equal(model(IDS), torch.load(saved, weights_only=False)(IDS))
    assert all(torch.equal(tensor, state[name]) for name, tensor in model.state_dict().items())


def test_what_moves_or_converts_the_module_reads_all_of_it(full) -> None:
    """
    It is no longer lazy then, and right.
    """
    model, path = full
    empty = skeleton()
    expected = copy.deepcopy(model).double()(IDS)

    with load_lazily(empty, path, pool=TIGHT):
        empty.double()

    assert torch.equal(expected, empty(IDS))


@pytest.mark.filterwarnings("ignore")  # of what is deprecated inside of torch's compiler
def test_a_compiled_module_gives_the_same_answers(tmp_path) -> None:
    """
    Weights are read outside of what is compiled.
    """
    with torch.device("meta"):
        empty = nn.Sequential(nn.Linear(16, 32), nn.ReLU())
    save_file({"0.weight": torch.ones(32, 16), "0.bias": torch.ones(32)}, tmp_path / "m")

    with load_lazily(empty, tmp_path / "m", pool=1 << 20):
        compiled = torch.compile(empty, backend="eager")

        assert torch.full((2, 32), 17.0).equal(compiled(torch.ones(2, 16)))
    torch.compiler.reset()


def test_a_weight_that_was_written_to_stays(full) -> None:
    """
    What was written is not lost when others need the room.
    """
    _, path = full
    empty = skeleton()

    with load_lazily(empty, path, pool=TIGHT) as weights:
        empty.layers[0].norm1.weight.zero_()
        dict(empty.named_parameters())["layers.1.norm1.weight"].data.fill_(3)
        empty(IDS)
        weights.pool.evict()

        assert 0 == empty.layers[0].norm1.weight.sum()
        assert 48 == empty.layers[1].norm1.weight.sum()


def test_a_parameter_that_is_replaced_is_the_new_one(full) -> None:
    """
    Assigning to a module works as ever.
    """
    _, path = full
    empty = skeleton()

    with load_lazily(empty, path, pool=TIGHT):
        empty.layers[0].norm1.weight = nn.Parameter(torch.ones(16))

        assert 16 == empty.layers[0].norm1.weight.sum()


@pytest.mark.parametrize(
    "write",
    [
        lambda weight: weight.requires_grad_(),
        lambda weight: setattr(weight, "requires_grad", True),
        lambda weight: setattr(weight, "data", torch.ones(20, 16)),
    ],
)
def test_what_cannot_be_done_with_lazy_weights_says_so(full, write) -> None:
    """
    Gradients would be lost, and so would data that is put in their place.
    """
    _, path = full
    empty = skeleton()

    with load_lazily(empty, path, pool=TIGHT), pytest.raises(ContractError, match=r"embed\.weight"):
        write(next(empty.parameters()))


def test_a_closed_model_says_so(full) -> None:
    """
    And its memory is given back.
    """
    _, path = full
    empty = skeleton()
    weights = load_lazily(empty, path, pool=1 << 20)
    empty(IDS)

    weights.close()
    weights.close()

    assert 0 == weights.pool.resident_bytes
    with pytest.raises(WeightsError, match="is closed, and its weights are needed"):
        empty(IDS)


def test_a_weight_that_is_held_outlives_its_model(full) -> None:
    """
    Memory is never used again while somebody looks into it.
    """
    model, path = full
    empty = skeleton()

    with load_lazily(empty, path, pool=TIGHT):
        held = empty.embed.weight
        empty(IDS)

    assert torch.equal(model.embed.weight, held)


def test_a_file_that_changes_meanwhile_is_found(full, tmp_path) -> None:
    """
    No weights of another model are mixed in.
    """
    model, _ = full
    path = tmp_path / "m.safetensors"
    save_file({n: t for n, t in model.state_dict().items() if n != "head.weight"}, path)
    empty = skeleton()

    with load_lazily(empty, path, pool=TIGHT):
        empty(IDS)
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size - 100)

        with pytest.raises(WeightsChangedError):
            empty(IDS)


@pytest.mark.parametrize("pool", [100, 2500])
def test_a_budget_that_is_too_small_is_told_at_once(full, pool) -> None:
    """
    Too small for what stays, or for the largest part beside it; the module is as it was.
    """
    _, path = full
    empty = skeleton()
    room = WeightPool(pool)

    with pytest.raises(WeightsBudgetError, match="and the budget is"):
        load_lazily(empty, path, pool=room)

    assert 0 == room.resident_bytes
    assert all(tensor.is_meta for tensor in empty.state_dict().values())


def test_weights_of_another_model_are_refused_at_once(full) -> None:
    """
    As by a full load.
    """
    with pytest.raises(WeightMismatchError):
        load_lazily(nn.Linear(2, 2), full[1], pool=1 << 20)
    with pytest.raises(ContractError, match="expected a WeightPool"):
        load_lazily(skeleton(), full[1], pool="1 GB")


def test_a_lazy_module_is_not_loaded_over(full) -> None:
    """
    Two loads into one module would fight over it.
    """
    _, path = full
    empty = skeleton()

    with (
        load_lazily(empty, path, pool=1 << 20),
        pytest.raises(ContractError, match="of the kind Placeholder"),
    ):
        load_lazily(empty, path, pool=1 << 20)


CHILD = """
import sys, torch
from torch import nn
from vlmcore.weights.lazy import load_lazily

def resident():
    return int(next(l for l in open("/proc/self/status") if l.startswith("VmRSS")).split()[1]) >> 10

with torch.device("meta"):
    model = nn.Sequential(*[nn.Linear(2048, 2048, bias=False) for _ in range(12)])
torch.ones(64, 2048) @ torch.ones(2048, 64)
x = torch.ones(1, 2048)
weights = load_lazily(model, sys.argv[1], pool=70 << 20)
before = most = resident()
with torch.inference_mode():
    for _ in range(2):
        y = x
        for layer in model:
            y = layer(y)
            most = max(most, resident())
assert y.sum() != 0
weights.pool.evict()
evicted = resident()
weights.close()
print(most - before, evicted - before)
"""


def test_memory_stays_within_the_budget_and_is_given_back(tmp_path) -> None:
    """
    As the system counts it, in a process of its own: 192 MiB of weights in 70 MiB, two rounds.
    """
    path = tmp_path / "m.safetensors"
    weights = {f"{i}.weight": torch.full((2048, 2048), 1 / 2048) for i in range(12)}
    save_file(weights, path)

    most, after = map(int, run_child(CHILD, path).split())

    assert most < 70 + 64  # the budget, a module that is leaving, and staging
    assert after < 48


CONVERTING = """
import sys, torch
from torch import nn
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.lazy import load_lazily

def resident(field):
    lines = open("/proc/self/status").read().splitlines()
    return int(next(l for l in lines if l.startswith(field)).split()[1]) >> 10

with torch.device("meta"):
    model = nn.Linear(4096, 4096, bias=False)
torch.ones(1 << 16).to(torch.bfloat16)
budget = ReadBudget(staging_bytes=8 << 20, readers=2, chunk_bytes=1 << 20)
before = resident("VmRSS")
with load_lazily(model, sys.argv[1], pool=40 << 20, dtype="bfloat16", budget=budget):
    assert 1.5 == model.weight[-1, -1] == model.weight[0, 0]
    print(resident("VmHWM") - before)
"""


def test_weights_that_are_converted_are_never_in_memory_as_the_file_has_them(tmp_path) -> None:
    """
    In a process of its own: 64 MiB of float32 become 32 MiB by way of 8 MiB of staging.
    """
    save_file({"weight": torch.full((4096, 4096), 1.5)}, tmp_path / "m")

    peak = int(run_child(CONVERTING, tmp_path / "m"))

    assert 32 <= peak < 32 + 8 + 32
