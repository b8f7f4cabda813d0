"""``vlmcore weights``: look at files of weights, compare them with their manifest, repack them."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import Any, TypeAlias

from vlmcore.cli import _weights
from vlmcore.cli._exit_codes import ExitCode, exit_codes_help
from vlmcore.cli._terminal import Terminal
from vlmcore.weights.layouts import ALIGN_BYTES
from vlmcore.weights.packing import pack, unpack
from vlmcore.weights.verifying import Verification

__all__ = ["add_command"]

_PATH = """\
PATH is a FlashPack file, a file of safetensors, an index of several (*.safetensors.index.json), or
a folder that holds one of them. Everything that it says of itself is checked before it is believed.
"""
_CODES = (ExitCode.DONE, ExitCode.INCOMPLETE, ExitCode.USAGE, ExitCode.NO_PACKAGE)
_MEANINGS = {
    "incomplete": "a file cannot be read or written, or says what cannot be true",
    "interrupted": "stopped with Ctrl-C",
}
_WRITE_CODES = exit_codes_help(*_CODES, ExitCode.INTERRUPTED, done="it is written", **_MEANINGS)
_LOOK_CODES = exit_codes_help(
    *_CODES, ExitCode.INTERRUPTED, done="the files are as they should be", **_MEANINGS
)
_VERIFY_CODES = exit_codes_help(
    *_CODES,
    ExitCode.UNSAFE,
    ExitCode.INTERRUPTED,
    done="the weights are those of the manifest, as far as they were compared",
    unsafe="the weights are others than those of the manifest",
    **_MEANINGS,
)
_WRITE = f"""\
{_PATH}
What was at TARGET is there until the new file is whole. Beside it a manifest is written: the
checksum of each tensor, the source with the SHA-256 of its files, and what made it. Nothing is
converted unless --dtype says so; whole numbers and float8 never are.

{_WRITE_CODES}
"""
_INSPECT = f"{_PATH}\n{_LOOK_CODES}\n"
_VERIFY = f"""\
{_PATH}
The manifest finds what happened by mistake, by the name of the tensor. Against somebody who would
forge both, compare the SHA-256 that it has of each file with one that you have from elsewhere.

{_VERIFY_CODES}
"""
_Work: TypeAlias = Callable[[argparse.Namespace, Terminal], ExitCode]


def add_command(commands: Any) -> None:
    """Add the command to *commands*."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "weights",
        help="look at files of weights, compare them with their manifest, repack them",
        description="Look at files of weights, compare them with their manifest, repack them.",
        allow_abbrev=False,
    )
    inner = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_inspect(inner)
    _add_verify(inner)
    _add_pack(inner)
    _add_unpack(inner)


def _add_inspect(commands: Any) -> None:
    parser = _add_parser(
        commands,
        "inspect",
        work=_inspect,
        summary="say what files of weights hold, without reading a tensor",
        epilog=_INSPECT,
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
        epilog=_VERIFY,
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
        epilog=_WRITE,
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
        epilog=_WRITE,
    )
    _add_writing(parser)


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
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="one JSON object")
    group.add_argument("--quiet", "-q", action="store_true", help="no progress, only complaints")


def _run(work: _Work, arguments: argparse.Namespace) -> int:
    terminal = Terminal.standard(quiet=arguments.quiet)
    return _weights.told_of(terminal, lambda: work(arguments, terminal))


def _inspect(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    return _weights.inspect(
        terminal, arguments.path, as_json=arguments.json, tensors=arguments.tensors
    )


def _verify(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    return _weights.verify_files(
        terminal,
        arguments.path,
        manifest=arguments.manifest,
        how=Verification.SAMPLED if arguments.sampled else Verification.WHOLE,
        seed=arguments.seed,
        as_json=arguments.json,
        quiet=arguments.quiet,
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
    }


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
