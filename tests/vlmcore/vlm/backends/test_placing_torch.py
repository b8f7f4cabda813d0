"""Where a model runs and in which number format; devices that are not here are pretended."""

from __future__ import annotations

import pytest
import torch

from vlmcore.errors import (
    ContractError,
    MissingDependencyError,
    ModelMemoryError,
    UnsupportedModelError,
)
from vlmcore.vlm.backends import _placing
from vlmcore.vlm.backends._placing import (
    check_requirements,
    choose_device,
    choose_dtype,
    free_bytes,
    needed_bytes,
    present_devices,
    require_room,
)
from vlmcore.vlm.checkpoint import Checkpoint
from vlmcore.vlm.placement import Attention, Dtype, MemoryMode, Placement

CPU, CUDA, MPS = torch.device("cpu"), torch.device("cuda:0"), torch.device("mps")


@pytest.fixture
def pretend(monkeypatch):
    """Pretend that this machine has other devices, packages and abilities."""

    def pretend(*, cuda=0, xpu=0, mps=False, packages=(), computes=True, bf16=True, cpu_bf16=False):
        for module, count in ((torch.cuda, cuda), (torch.xpu, xpu)):
            monkeypatch.setattr(module, "is_available", lambda count=count: count > 0)
            monkeypatch.setattr(module, "device_count", lambda count=count: count)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_: bf16)
        monkeypatch.setattr(_placing, "_computes_in", lambda *_: computes)
        monkeypatch.setattr(_placing, "_processor_has_bfloat16", lambda: cpu_bf16)
        monkeypatch.setattr(
            _placing, "find_spec", lambda name: object() if name in packages else None
        )

    return pretend


@pytest.mark.parametrize(
    ("devices", "names"),
    [
        ({"cuda": 2, "xpu": 1, "mps": True}, ("cuda:0", "cuda:1", "xpu:0", "mps", "cpu")),
        ({"xpu": 1, "mps": True}, ("xpu:0", "mps", "cpu")),
        ({"mps": True}, ("mps", "cpu")),
        ({}, ("cpu",)),
    ],
)
def test_auto_takes_the_first_of_cuda_xpu_mps_and_cpu(pretend, devices, names) -> None:
    """
    The order is fixed, and said.
    """
    pretend(**devices)

    assert names == present_devices()
    assert names[0] == str(choose_device(Placement()))


def test_a_device_can_be_named(pretend) -> None:
    """
    Without a number, the first of its kind is meant.
    """
    pretend(cuda=2, mps=True)

    for name, device in (("cuda", "cuda:0"), ("cuda:1", "cuda:1"), ("mps", "mps"), ("cpu", "cpu")):
        assert device == str(choose_device(Placement(device=name)))


@pytest.mark.parametrize("name", ["cuda:2", "xpu", "mps"])
def test_a_device_that_is_not_here_is_answered_with_those_that_are(pretend, name) -> None:
    """
    Nothing falls back to another device silently.
    """
    pretend(cuda=2)

    with pytest.raises(ContractError) as error:
        choose_device(Placement(device=name))

    there = "there is 'cuda:0', 'cuda:1', 'cpu'"
    assert f"device: got {name!r}, which is not here; {there}" == str(error.value)


def test_memory_mode_cpu_is_the_processor_whatever_else_there_is(pretend) -> None:
    """
    The memory mode decides; a device that contradicts it is a mistake.
    """
    pretend(cuda=1)

    assert CPU == choose_device(Placement(memory=MemoryMode.CPU))
    assert CPU == choose_device(Placement(memory=MemoryMode.CPU, device="cpu"))
    with pytest.raises(ContractError, match="memory: got 'cpu' together with the device 'cuda'"):
        choose_device(Placement(memory=MemoryMode.CPU, device="cuda"))


@pytest.mark.parametrize("memory", [MemoryMode.NF4, MemoryMode.INT8])
def test_quantized_weights_name_the_device_or_the_package_that_is_missing(pretend, memory) -> None:
    """
    The device comes first: on a processor, installing bitsandbytes would be no help.
    """
    placement = Placement(memory=memory)
    pretend(cuda=1)
    with pytest.raises(UnsupportedModelError, match="needs a CUDA or XPU device") as error:
        check_requirements("m", placement, CPU)
    assert f"memory={memory.value!r}" in str(error.value)
    with pytest.raises(MissingDependencyError) as missing:
        check_requirements("m", placement, CUDA)
    assert ("bitsandbytes", "quantized") == (missing.value.package, missing.value.extra)
    pretend(cuda=1, packages=("bitsandbytes",))
    with pytest.raises(MissingDependencyError, match="accelerate"):
        check_requirements("m", placement, CUDA)
    pretend(cuda=1, packages=("bitsandbytes", "accelerate"))
    check_requirements("m", placement, CUDA)


def test_flash_attention_names_the_device_the_format_or_the_package(pretend) -> None:
    """
    What it needs is said before anything is downloaded.
    """
    placement = Placement(attention=Attention.FLASH_2)
    pretend(cuda=1)
    with pytest.raises(UnsupportedModelError, match="needs a CUDA device"):
        check_requirements("m", placement, CPU)
    with pytest.raises(UnsupportedModelError, match="package 'flash-attn'"):
        check_requirements("m", placement, CUDA)
    pretend(cuda=1, packages=("flash_attn",))
    check_requirements("m", placement, CUDA)
    in_32_bits = Placement(attention=Attention.FLASH_2, dtype=Dtype.FLOAT32)
    with pytest.raises(UnsupportedModelError, match="16 bits only"):
        check_requirements("m", in_32_bits, CUDA)


@pytest.mark.parametrize(
    ("device", "machine", "stored", "dtype", "reason"),
    [
        (CUDA, {}, "bfloat16", torch.bfloat16, "this GPU computes in it"),
        (CUDA, {"bf16": False}, "bfloat16", torch.float16, "this GPU has no bfloat16"),
        (MPS, {}, "bfloat16", torch.bfloat16, "this device computes in it"),
        (MPS, {"computes": False}, "bfloat16", torch.float16, "this device has no bfloat16"),
        (CPU, {}, "bfloat16", torch.float32, "this processor is fastest in it"),
        (CPU, {}, "float16", torch.float32, "this processor is fastest in it"),
        (CPU, {}, "float32", torch.float32, "stored in float32"),
        (CPU, {}, None, torch.float32, "this processor is fastest in it"),
        (CPU, {"cpu_bf16": True}, "float16", torch.float32, "stored in float16"),
        (CPU, {"cpu_bf16": True}, "bfloat16", torch.bfloat16,
         "stored so, and this processor computes in it"),
    ],
)  # fmt: skip
def test_the_number_format_follows_the_device(  # noqa: PLR0917
    pretend, device, machine, stored, dtype, reason
) -> None:
    """
    16 bits where the device computes in them, the range of the training kept where possible.
    """
    pretend(**machine)

    assert (dtype, reason) == choose_dtype(device, Dtype.AUTO, stored)


@pytest.mark.parametrize("stored", ["bfloat16", "float16"])
def test_a_model_that_fits_a_processor_only_in_16_bits_stays_in_them(pretend, stored) -> None:
    """
    Slow is better than not at all, and the reason says so.
    """
    pretend()

    dtype, reason = choose_dtype(CPU, Dtype.AUTO, stored, fits=lambda d: d.itemsize < 4)

    assert f"torch.{stored}" == str(dtype)
    assert "float32 would not fit into memory" == reason


def test_a_format_that_was_asked_for_is_taken_or_refused(pretend) -> None:
    """
    Nothing else is taken silently.
    """
    pretend()
    assert (torch.float16, "as asked") == choose_dtype(CUDA, Dtype.FLOAT16, "bfloat16")
    pretend(computes=False)
    with pytest.raises(ContractError) as error:
        choose_dtype(MPS, Dtype.BFLOAT16, "bfloat16")
    assert "dtype: got 'bfloat16', which mps cannot compute in" == str(error.value)


def test_this_processor_computes_in_every_format_that_can_be_asked_for() -> None:
    """
    The probe is real arithmetic.
    """
    for wanted in (Dtype.BFLOAT16, Dtype.FLOAT16, Dtype.FLOAT32):
        assert "as asked" == choose_dtype(CPU, wanted, None)[1]
    assert not _placing._computes_in(torch.device("cuda:7"), torch.float32)
    assert _placing._processor_has_bfloat16() in (True, False)


def test_what_is_needed_follows_from_the_headers_and_the_format() -> None:
    """
    4 and 8 bits count with what stays in 16.
    """
    checkpoint = Checkpoint(files=(), elements={"BF16": 1000})

    assert 4000 == needed_bytes(checkpoint, torch.float32, MemoryMode.MANAGED)
    assert 2000 == needed_bytes(checkpoint, torch.bfloat16, MemoryMode.MANAGED)
    assert 500 < needed_bytes(checkpoint, torch.bfloat16, MemoryMode.NF4) < 1000
    assert 1000 < needed_bytes(checkpoint, torch.bfloat16, MemoryMode.INT8) < 2000


def test_too_little_memory_is_told_in_numbers(monkeypatch) -> None:
    """
    What is needed and what is free are both in the error, also as numbers.
    """
    monkeypatch.setattr(_placing, "free_host_bytes", lambda: 3 << 30)

    require_room("m", 3 << 30, CPU)
    with pytest.raises(ModelMemoryError) as error:
        require_room("m", 5 << 30, CPU)

    assert "m: its weights need 5.0 GiB, and 3.0 GiB are free on cpu" == str(error.value)
    assert (5 << 30, 3 << 30) == (error.value.needed_bytes, error.value.available_bytes)


def test_memory_that_pytorch_keeps_for_itself_is_free_for_a_model(monkeypatch) -> None:
    """
    The driver counts it as taken.
    """
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (100, 1000))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _: 50)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _: 20)

    assert 130 == free_bytes(CUDA)


def test_a_device_that_does_not_tell_is_not_in_the_way(monkeypatch) -> None:
    """
    Unknown is not too little.
    """

    def refuse(_: object) -> None:
        raise RuntimeError("no driver")

    monkeypatch.setattr(torch.cuda, "mem_get_info", refuse)

    assert free_bytes(CUDA) is None
    require_room("m", 1 << 60, CUDA)
