"""``vlmcore doctor``: what is installed, what is missing, and how to get it."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Iterator
from typing import Any

from vlmcore.cli._checkup import Checkup, examine
from vlmcore.cli._exit_codes import ExitCode
from vlmcore.cli._loading import LoadPredictor
from vlmcore.cli._terminal import Terminal
from vlmcore.vlm.devices import Device

__all__ = ["add_command"]

_GIB = 0x4000_0000


def add_command(commands: Any, *, load: LoadPredictor) -> None:
    """Add the command to *commands*; *load* loads the embedded model, to see whether it works."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "doctor",
        help="what is installed, what is missing, and how to get it",
        description="Look at this installation: versions, devices, extras, settings, plug-ins, "
        "and whether the embedded model answers. Secrets are never shown.",
        epilog="The exit code is 0 unless vlmcore itself is broken, or the server that was named "
        "does not answer; extras that are not installed are no fault.",
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument(
        "--server",
        metavar="URL",
        help="look at a server of models too: http://127.0.0.1:8000/v1, or the name of a provider",
    )
    parser.set_defaults(run=functools.partial(_run, load=load))


def _run(arguments: argparse.Namespace, *, load: LoadPredictor) -> int:
    terminal = Terminal.standard()
    checkup = examine(load=load, server=arguments.server)
    if arguments.json:
        terminal.document(checkup.document(), indent=2)
    else:
        for line in _lines(checkup):
            terminal.line(line)
    return ExitCode.DONE if checkup.is_sound else ExitCode.INCOMPLETE


def _lines(checkup: Checkup) -> Iterator[str]:
    versions = ", ".join(f"{name} {value}" for name, value in checkup.versions.items())
    yield versions
    yield f"on {checkup.platform}"
    yield from ("", "Devices, the one that is taken first:")
    yield from (_device(device) for device in checkup.devices)
    if checkup.no_accelerators:
        yield f"  {checkup.no_accelerators}"
    yield from ("", "Extras:")
    yield from _extras(checkup)
    yield from ("", "Settings:")
    yield from (f"  {name:22} {value}" for name, value in checkup.environment.items())
    yield from ("", f"Embedded model: {checkup.embedded.text}")
    if checkup.server is not None:
        yield f"Server: {checkup.server.text}"
    for broken in checkup.broken_commands:
        yield f"Broken command {broken.name!r} ({broken.value}): {broken.reason}"


def _device(device: Device) -> str:
    sizes = [
        f"{size / _GIB:.1f} GiB{word}"
        for size, word in ((device.total_bytes, ""), (device.free_bytes, " free"))
        if size is not None
    ]
    return f"  {device.name:8} {', '.join((device.label, *sizes))}"


def _extras(checkup: Checkup) -> Iterator[str]:
    for extra in checkup.extras:
        there = ", ".join(f"{name} {version}" for name, version in extra.installed.items())
        if extra.is_complete:
            yield f"  {extra.name:9} complete: {there}"
            continue
        old = [f"{name} from {version} on" for name, version in extra.too_old.items()]
        wanted = ", ".join((*extra.missing, *old))
        yield f"  {extra.name:9} needs {wanted}"
    if any(not extra.is_complete for extra in checkup.extras):
        yield '  What an extra needs is installed by: pip install "vlmcore[NAME]"'
