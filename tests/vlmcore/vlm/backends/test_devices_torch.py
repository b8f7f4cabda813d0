"""The accelerators that PyTorch reports, and what is made of drivers that do not tell."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from vlmcore.vlm.devices import Device, accelerators  # noqa: E402


def fail(_index: int) -> None:
    raise RuntimeError("the driver does not tell")


def test_every_gpu_is_listed_with_its_name_and_memory(monkeypatch) -> None:
    """
    In the order of their numbers; what is free is asked of the driver.
    """
    great = SimpleNamespace(name="Great GPU", total_memory=80 << 30)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: great)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda index: (index << 30, 80 << 30))

    first, second = accelerators()[:2]

    assert ("cuda:0", 0) == (first.name, first.free_bytes)
    assert second == Device(
        name="cuda:1", label="Great GPU", total_bytes=80 << 30, free_bytes=1 << 30
    )


def test_a_driver_that_does_not_tell_leaves_the_free_memory_unknown(monkeypatch) -> None:
    """
    The device is there all the same.
    """
    monkeypatch.setattr(torch.xpu, "is_available", lambda: True)
    monkeypatch.setattr(torch.xpu, "device_count", lambda: 1)
    monkeypatch.setattr(
        torch.xpu, "get_device_properties", lambda _: SimpleNamespace(name="X", total_memory=1)
    )
    monkeypatch.setattr(torch.xpu, "mem_get_info", fail)

    (xpu,) = [device for device in accelerators() if device.name == "xpu:0"]

    assert xpu.free_bytes is None


def test_what_is_not_there_is_not_listed() -> None:
    """
    On a machine without accelerators the list is empty.
    """
    if torch.cuda.is_available() or torch.xpu.is_available() or torch.backends.mps.is_available():
        pytest.skip("there is one")
    assert () == accelerators()
