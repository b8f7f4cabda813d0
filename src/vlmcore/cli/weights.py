"""``vlmcore weights``: look at files of weights, compare them, repack them, load them."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import Any, TypeAlias

from vlmcore.cli import _weights, _weights_help, _weights_loading
from vlmcore.cli._exit_codes import ExitCode
from vlmcore.cli._terminal import Terminal
from vlmcore.limits import WeightLimits
from vlmcore.weights.layouts import ALIGN_BYTES
from vlmcore.weights.packing import pack, unpack
from vlmcore.weights.report import Way
from vlmcore.weights.verifying import Verification

__all__ = ["add_command"]

_BUDGET = (
    ("--staging-mib", "staging_bytes", 0x10_0000, "memory for bytes on their way, in MiB"),
    ("--readers", "readers", 1, "parts that are read at once"),
    ("--chunk-mib", "chunk_bytes", 0x10_0000, "size of a part, in MiB"),
    ("--cached-readers", "cached_readers", 1, "parts copied from the page cache at once"),
)
_Work: TypeAlias = Callable[[argparse.Namespace, Terminal], ExitCode]


def add_command(commands: Any) -> None:
    """Add the command to *commands*."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "weights",
        help="look at files of weights, compare them with their manifest, repack and load them",
        description="Look at files of weights, compare them with their manifest, repack and load "
        "them.",
        allow_abbrev=False,
    )
    inner = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_inspect(inner)
    _add_verify(inner)
    _add_pack(inner)
    _add_unpack(inner)
    _add_load(inner)
    _add_tune(inner)


def _add_inspect(commands: Any) -> None:
    parser = _add_parser(
        commands,
        "inspect",
        work=_inspect,
        summary="say what files of weights hold, without reading a tensor",
        epilog=_weights_help.INSPECT,
    )
    parser.add_argument("path", metavar="PATH", help="the weights")
    parser.add_argument("--tensors", action="store_true", help="a line for each tensor, too")
    _add_output(parser)


def _add_verify(commands: Any) -> None:
    parser = _add_parser(
        commands,
        "verify",
        work=_verify,
        summary="compare weights with the manifest beside them",
        epilog=_weights_help.VERIFY,
    )
    parser.add_argument("path", metavar="PATH", help="the weights")
    parser.add_argument(
        "--manifest", metavar="FILE", help="the manifest, if it is not the one beside them"
    )
    parser.add_argument(
        "--sampled", action="store_true", help="compare tensors of a sixteenth of all bytes only"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="which of them (default: %(default)s)"
    )
    _add_output(parser)


def _add_pack(commands: Any) -> None:
    parser = _add_parser(
        commands,
        "pack",
        work=_pack,
        summary="pack weights into one FlashPack file",
        epilog=_weights_help.WRITE,
    )
    _add_writing(parser)
    parser.add_argument(
        "--align",
        type=int,
        default=ALIGN_BYTES,
        metavar="BYTES",
        help="what each tensor is aligned to (default: %(default)s)",
    )


def _add_unpack(commands: Any) -> None:
    parser = _add_parser(
        commands,
        "unpack",
        work=_unpack,
        summary="write weights as one file of safetensors",
        epilog=_weights_help.WRITE,
    )
    _add_writing(parser)


def _add_load(commands: Any) -> None:
    parser = _add_parser(
        commands,
        "load",
        work=_load,
        summary="load weights, and tell how long that takes",
        epilog=_weights_help.LOAD,
    )
    parser.add_argument("path", metavar="PATH", help="the weights")
    parser.add_argument(
        "--way",
        choices=[way.value for way in Way],
        default=Way.VIEWS.value,
        metavar="WAY",
        help="views maps the files, copy reads them into own memory (default: %(default)s)",
    )
    parser.add_argument(
        "--verify",
        choices=[how.value for how in Verification],
        default=Verification.OFF.value,
        metavar="HOW",
        help="compare whole, sampled or off, while reading (default: %(default)s)",
    )
    group = parser.add_argument_group("reading")
    for option, field, _, meaning in _BUDGET:
        group.add_argument(option, dest=field, type=int, metavar="N", help=meaning)
    group.add_argument(
        "--direct",
        action=argparse.BooleanOptionalAction,
        help="read past the page cache, or never (default: where it is not there)",
    )
    _add_output(parser)


def _add_tune(commands: Any) -> None:
    parser = _add_parser(
        commands,
        "tune",
        work=_tune,
        summary="find out how weights are read fastest here, and remember it",
        epilog=_weights_help.TUNE,
    )
    parser.add_argument("path", metavar="PATH", help="the weights; the larger the better")
    parser.add_argument("--again", action="store_true", help="measure though it is remembered")
    parser.add_argument(
        "--memory", metavar="FILE", help="what remembers (default: in the folder of caches)"
    )
    _add_output(parser)


def _add_parser(
    commands: Any, name: str, *, work: _Work, summary: str, epilog: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=functools.partial(_run, work))
    return parser


def _add_writing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help="the weights")
    parser.add_argument("target", metavar="TARGET", help="the file to write")
    parser.add_argument(
        "--dtype",
        choices=("float16", "bfloat16", "float32", "float64"),
        metavar="DTYPE",
        help="convert floating-point numbers to float16, bfloat16, float32 or float64",
    )
    parser.add_argument(
        "--checkpoint", metavar="NAME", help="what the manifest calls the source (default: known)"
    )
    parser.add_argument(
        "--revision", metavar="COMMIT", help="the version of the source, for the manifest"
    )
    parser.add_argument("--no-manifest", action="store_true", help="write the file only")
    _add_output(parser)


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-tensors",
        type=int,
        default=WeightLimits().max_tensors,
        metavar="N",
        help="refuse files of more, or of longer headers than so many need (default: %(default)s)",
    )
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="one JSON object")
    group.add_argument("--quiet", "-q", action="store_true", help="no progress, only complaints")


def _run(work: _Work, arguments: argparse.Namespace) -> int:
    terminal = Terminal.standard(quiet=arguments.quiet)
    return _weights.told_of(terminal, lambda: work(arguments, terminal))


def _inspect(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    return _weights.inspect(
        terminal,
        arguments.path,
        limits=_limits(arguments),
        as_json=arguments.json,
        tensors=arguments.tensors,
    )


def _verify(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    return _weights.verify_files(
        terminal,
        arguments.path,
        manifest=arguments.manifest,
        limits=_limits(arguments),
        how=Verification.SAMPLED if arguments.sampled else Verification.WHOLE,
        seed=arguments.seed,
        as_json=arguments.json,
        quiet=arguments.quiet,
    )


def _load(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    wishes = {
        field: unit * value
        for _, field, unit, _ in _BUDGET
        if (value := getattr(arguments, field)) is not None
    }
    if arguments.direct is not None:
        wishes["direct"] = arguments.direct
    return _weights_loading.load(
        terminal,
        arguments.path,
        way=Way(arguments.way),
        verification=Verification(arguments.verify),
        wishes=wishes,
        limits=_limits(arguments),
        as_json=arguments.json,
        quiet=arguments.quiet,
    )


def _tune(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    return _weights_loading.tune(
        terminal,
        arguments.path,
        memory=arguments.memory,
        again=arguments.again,
        limits=_limits(arguments),
        as_json=arguments.json,
    )


def _pack(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    work = functools.partial(
        pack,
        arguments.path,
        arguments.target,
        align_bytes=arguments.align,
        **_said_of_writing(arguments),
    )
    return _write(work, "packing", arguments, terminal)


def _unpack(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    work = functools.partial(
        unpack, arguments.path, arguments.target, **_said_of_writing(arguments)
    )
    return _write(work, "unpacking", arguments, terminal)


def _said_of_writing(arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        "dtype": arguments.dtype,
        "checkpoint": arguments.checkpoint,
        "revision": arguments.revision,
        "manifest": not arguments.no_manifest,
        "limits": _limits(arguments),
    }


def _limits(arguments: argparse.Namespace) -> WeightLimits:
    return WeightLimits.for_tensors(arguments.max_tensors)


def _write(
    work: Callable[..., Any], doing: str, arguments: argparse.Namespace, terminal: Terminal
) -> ExitCode:
    return _weights.write(
        terminal,
        lambda progress: work(progress=progress),
        doing=doing,
        as_json=arguments.json,
        quiet=arguments.quiet,
    )
