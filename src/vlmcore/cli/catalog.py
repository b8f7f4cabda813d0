"""``vlmcore catalog``: the models and policies that are known by name."""

from __future__ import annotations

import argparse
import enum
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from vlmcore.cli._exit_codes import ExitCode
from vlmcore.cli._terminal import Terminal
from vlmcore.policy.catalog import POLICIES, PolicySpec, Readiness
from vlmcore.vlm.catalog import MODELS, ModelSpec
from vlmcore.vlm.detector_catalog import DETECTORS

__all__ = ["add_command"]

_EPILOG = """\
vlm: give the KEY to 'vlmcore describe --model'. GiB is an estimate of the memory with 16-bit
weights; 4-bit needs about a third. 'gated': the licence is accepted on the hub first. 'video':
trained on video, too.

detectors: give the KEY to 'vlmcore detect --model'. They run in 32 bits, which takes twice the GiB.

vla: policies by how far they are from moving a robot, with their weights and what runs them.
'tuned for': there are weights for these robots and benchmarks; under 'base' they are others than
the ones shown. Nothing is downloaded or run, and no policy makes its own actions safe: see
'vlmcore actions check'.
"""


def add_command(commands: Any) -> None:
    """Add the command to *commands*."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "catalog",
        help="list the models and policies that are known by name",
        description="List the models and policies that are known by name.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "kind",
        choices=("vlm", "vla", "detectors"),
        help="vlm: vision-language models; vla: vision-language-action policies; detectors: models "
        "that find what labels name",
    )
    parser.add_argument("--json", action="store_true", help="one JSON array")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    terminal = Terminal.standard()
    models = {"vlm": MODELS, "detectors": DETECTORS}.get(arguments.kind)
    if arguments.json:
        rows: Sequence[Any] = POLICIES if models is None else models
        documents = [attrs.asdict(row, value_serializer=_plain) for row in rows]
        terminal.document(documents, indent=2)
    else:
        for line in _policies(POLICIES) if models is None else _models(models):
            terminal.line(line)
    return ExitCode.DONE


def _plain(_row: Any, _field: Any, value: Any) -> Any:
    return value.value if isinstance(value, enum.Enum) else value


def _models(models: Sequence[ModelSpec]) -> Iterator[str]:
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


def _policies(policies: Sequence[PolicySpec]) -> Iterator[str]:
    """Write two lines for each under what its readiness means."""
    width = max(len(spec.key) for spec in policies)
    wide = max(len(spec.scale) for spec in policies)
    yield f"  {'KEY':{width}}  {'SCALE':{wide}}  LABEL"
    for readiness in Readiness:
        yield f"{readiness.value}: {readiness.advice}"
        for spec in policies:
            if spec.readiness is not readiness:
                continue
            yield f"  {spec.key:{width}}  {spec.scale:{wide}}  {spec.label}"
            runtimes = ", ".join(runtime.value for runtime in spec.runtimes)
            tuned = f"; tuned for {', '.join(spec.fine_tuned_for)}" if spec.fine_tuned_for else ""
            yield f"  {'':{width}}  {spec.checkpoint or 'no weights'} ({runtimes}){tuned}"
