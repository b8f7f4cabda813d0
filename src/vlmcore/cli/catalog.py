"""``vlmcore catalog``: the models that are known by name."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from vlmcore.cli._exit_codes import ExitCode
from vlmcore.cli._terminal import Terminal
from vlmcore.vlm.catalog import MODELS, ModelSpec

__all__ = ["add_command"]


def add_command(commands: Any) -> None:
    """Add the command to *commands*."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "catalog",
        help="list the models that are known by name",
        description="List the models that are known by name: give the KEY to --model.",
        epilog="GiB is an estimate of the memory with 16-bit weights; 4-bit needs about a third. "
        "'gated': the licence is accepted on the hub first. 'video': trained on video, too.",
        allow_abbrev=False,
    )
    parser.add_argument("kind", choices=("vlm",), help="vlm: vision-language models")
    parser.add_argument("--json", action="store_true", help="one JSON array")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    terminal = Terminal.standard()
    if arguments.json:
        terminal.document([attrs.asdict(model) for model in MODELS], indent=2)
    else:
        for line in _lines(MODELS):
            terminal.line(line)
    return ExitCode.DONE


def _lines(models: Sequence[ModelSpec]) -> Iterator[str]:
    """Write a table under each family: in one table the lines would be wider than most windows."""
    width = max(len(model.key) for model in models)
    yield f"  {'KEY':{width}}    GiB                LABEL"
    for family, members in itertools.groupby(models, key=lambda model: model.family):
        yield family
        for model in members:
            gated = "gated" if model.gated else ""
            video = "video" if model.video else ""
            gib = f"{model.bf16_gib:5.1f}"
            yield f"  {model.key:{width}}  {gib}  {gated:5}  {video:5}  {model.label}"
