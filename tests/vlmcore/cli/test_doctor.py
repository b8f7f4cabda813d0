"""``vlmcore doctor``: an honest look at an installation that never shows a secret."""

import json
import subprocess
import sys

import pytest

import vlmcore
from model_server_cases import says, serving
from vlmcore.cli import _checkup
from vlmcore.cli._plugins import BrokenCommand
from vlmcore.errors import MissingDependencyError
from vlmcore.vlm.devices import Device

GPU = Device(name="cuda:0", label="Great GPU", total_bytes=80 << 30, free_bytes=79 << 30)


@pytest.fixture(autouse=True)
def _no_torch(monkeypatch) -> None:
    """A machine with one accelerator, told without loading a framework."""
    monkeypatch.setattr(_checkup, "accelerators", lambda: (GPU,))


def test_it_tells_versions_devices_extras_and_settings(command, monkeypatch) -> None:
    """
    Everything that a report of a fault needs, in text that a person can read.
    """
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    done = command("doctor")

    assert 0 == done.code
    assert f"vlmcore {vlmcore.__version__}, Python 3." in done.out
    assert "  cuda:0   Great GPU, 80.0 GiB, 79.0 GiB free" in done.out
    assert "  cpu " in done.out
    assert "  testing   complete: hypothesis" in done.out
    assert "HF_HUB_OFFLINE         1\n" in done.out
    assert "Embedded model: answers on cpu" in done.out


def test_json_has_the_same_for_programs(command) -> None:
    """
    One object, with sizes in bytes and a verdict.
    """
    found = json.loads(command("doctor", "--json").out)

    assert found["sound"] is True
    assert ["cuda:0", "cpu"] == [device["name"] for device in found["devices"]]
    assert 80 << 30 == found["devices"][0]["total_bytes"]
    extras = {extra["name"]: extra for extra in found["extras"]}
    assert extras["testing"]["complete"] is True
    assert found["embedded"]["works"] is True


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_secret_is_set_or_not_and_never_shown(command, monkeypatch, form) -> None:
    """
    Reports are pasted into public trackers.
    """
    monkeypatch.setenv("HF_TOKEN", "hf_do_not_show_me")

    done = command("doctor", *form)

    assert "do_not_show_me" not in done.out + done.err
    assert "set (not shown)" in done.out


def test_without_torch_it_is_sound_and_says_what_to_install(command, monkeypatch) -> None:
    """
    An extra that is not installed is no fault: the exit code stays 0.
    """

    def missing(*_, **__):
        raise MissingDependencyError("torch", "local")

    monkeypatch.setattr(_checkup, "accelerators", missing)

    done = command("doctor", load=missing)

    assert 0 == done.code
    assert "other devices are not looked for: 'torch' is needed here" in done.out
    assert "Embedded model: not tried: 'torch' is needed here" in done.out
    assert 'pip install "vlmcore[local]"' in done.out


def test_a_torch_that_is_broken_is_told_and_not_fatal(command, monkeypatch) -> None:
    """
    A driver that does not fit is what people run a doctor for.
    """

    def broken():
        raise OSError("libcudart.so: cannot open")

    monkeypatch.setattr(_checkup, "accelerators", broken)

    assert "torch cannot be used: OSError: libcudart.so" in command("doctor").out


def test_an_embedded_model_that_fails_is_a_fault(command) -> None:
    """
    It is part of the package: the exit code says that something is broken.
    """

    def fail(*_, **__):
        raise OSError("model.safetensors is cut")

    done = command("doctor", load=fail)

    assert 1 == done.code
    assert "Embedded model: fails: OSError: model.safetensors is cut" in done.out


def test_broken_commands_are_listed(command, monkeypatch) -> None:
    """
    With the place they point at, so that their package can be found.
    """
    broken = BrokenCommand("arm", "arm_commands:add", "ImportError: no arm")
    monkeypatch.setattr(_checkup, "add_plugin_commands", lambda _: (broken,))

    done = command("doctor")

    assert "Broken command 'arm' (arm_commands:add): ImportError: no arm" in done.out
    assert 0 == done.code


def test_it_works_where_nothing_optional_is_installed() -> None:
    """
    Without torch, transformers and Pillow it is quick, complete, and a success.
    """
    program = (
        "import sys\n"
        "for name in ('torch', 'transformers', 'PIL', 'httpx'): sys.modules[name] = None\n"
        "from vlmcore.cli import main\n"
        "sys.exit(main(['doctor']))\n"
    )
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, check=False, capture_output=True, text=True)

    assert (0, "") == (done.returncode, done.stderr)
    assert "other devices are not looked for" in done.stdout
    assert "Embedded model: not tried" in done.stdout


def test_a_server_that_is_named_is_asked_what_it_has(command) -> None:
    """
    Its models are listed; one that does not answer is a fault.
    """
    body = json.dumps({"data": [{"id": "tiny"}, {"id": "small"}]}).encode()
    with serving(says(body)) as server:
        done = command("doctor", "--server", server.url)
    assert 0 == done.code
    assert "and has tiny, small" in done.out

    gone = command("doctor", "--server", server.url, "--json")
    assert 0 != gone.code
    assert "nothing listens there" in json.loads(gone.out)["server"]["text"]


def test_a_provider_without_its_key_is_told_by_the_name_of_the_variable(
    command, monkeypatch
) -> None:
    """
    Nothing is sent.
    """
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    done = command("doctor", "--server", "groq")
    assert "Server: GROQ_API_KEY: is not set in the environment" in done.out
