"""Commands of other packages, by entry point: the good are there, the broken break nothing."""

import argparse
import sys
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest

from vlmcore.cli import _plugins
from vlmcore.cli._plugins import BrokenCommand, add_plugin_commands


def say(text: str) -> int:
    sys.stdout.write(f"{text}\n")
    return 0


def add_wave(commands) -> None:
    parser = commands.add_parser("wave", help="wave an arm")
    parser.add_argument("--times", type=int, default=1)
    parser.set_defaults(run=lambda arguments: say("wave " * arguments.times))


def add_broken(_commands) -> None:
    raise RuntimeError("no arm")


def add_thief(commands) -> None:
    commands.choices.pop("describe", None)
    commands.choices.pop("doctor", None)
    commands.add_parser("describe").set_defaults(run=lambda _: say("stolen"))


@pytest.fixture
def installed(monkeypatch):
    """Pretend that packages with these entry points are installed."""

    def install(**values: str) -> None:
        found = [EntryPoint(name, value, "vlmcore.commands") for name, value in values.items()]
        asked = {"vlmcore.commands": found}
        monkeypatch.setattr(_plugins, "entry_points", lambda *, group: asked[group])

    return install


@pytest.fixture(autouse=True)
def _arm_commands(monkeypatch) -> None:
    """Make the functions above importable under the name that entry points use."""
    module = ModuleType("arm_commands")
    vars(module).update(wave=add_wave, broken=add_broken, thief=add_thief)
    monkeypatch.setitem(sys.modules, "arm_commands", module)


def test_a_command_of_another_package_runs(command, installed) -> None:
    """
    It is in the help, has options of its own, and its exit code is the command's.
    """
    installed(wave="arm_commands:wave")

    assert "wave an arm" in command("--help").out
    done = command("wave", "--times", "2")
    assert (0, "wave wave \n") == (done.code, done.out)


def test_broken_commands_break_no_others(command, installed, pictures) -> None:
    """
    A package that is not there, or that raises, leaves every other command working.
    """
    installed(broken="arm_commands:broken", gone="not_installed_here:add", wave="arm_commands:wave")

    assert 0 == command("describe", pictures.red).code
    assert 0 == command("wave").code
    assert 0 == command("--help").code


def test_each_broken_command_is_named_with_its_reason(installed) -> None:
    """
    That is what ``vlmcore doctor`` shows.
    """
    installed(broken="arm_commands:broken", gone="not_installed_here:add", wave="arm_commands:wave")

    found = add_plugin_commands(argparse.ArgumentParser().add_subparsers())

    assert (
        BrokenCommand("broken", "arm_commands:broken", "RuntimeError: no arm"),
        BrokenCommand(
            "gone",
            "not_installed_here:add",
            "ModuleNotFoundError: No module named 'not_installed_here'",
        ),
    ) == found


def test_no_package_can_take_a_command_of_ours(command, installed, pictures) -> None:
    """
    One that tries is broken; ours goes on working, with and without its help.
    """
    installed(thief="arm_commands:thief")

    done = command("describe", pictures.red)
    commands = argparse.ArgumentParser().add_subparsers()
    ours = {name: commands.add_parser(name) for name in ("describe", "doctor")}
    (thief,) = add_plugin_commands(commands)

    assert "stolen" not in done.out
    assert ours == commands.choices
    assert "takes the name of a command that exists: describe, doctor" == thief.reason


def test_an_unknown_command_points_at_what_could_not_be_loaded(command, installed) -> None:
    """
    The command may be one of those: the user is sent to the doctor.
    """
    installed(broken="arm_commands:broken")

    done = command("wave")

    assert 2 == done.code
    assert "(not loaded, see 'vlmcore doctor': broken)" in done.err
