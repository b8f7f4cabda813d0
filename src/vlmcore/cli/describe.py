"""``vlmcore describe``: what the model sees in each image or video, one after the other."""

from __future__ import annotations

import argparse
import functools
from typing import Any

from vlmcore.cli._answers import AnswerSink, JsonLines, PlainText, Streaming
from vlmcore.cli._asking import (
    add_budget,
    add_model,
    add_sampling,
    add_structure,
    budget_of,
    options_of,
    placement_of,
)
from vlmcore.cli._describing import PROMPT, Describing
from vlmcore.cli._exit_codes import ExitCode, exit_codes_help
from vlmcore.cli._loading import LoadPredictor
from vlmcore.cli._sources import Viewing, questions_about
from vlmcore.cli._terminal import Terminal
from vlmcore.errors import ContractError
from vlmcore.media.selections import FrameSampling, SamplingStrategy
from vlmcore.vlm.prompt import Prompt

__all__ = ["add_command"]

_EXIT_CODES = exit_codes_help(*(code for code in ExitCode if code is not ExitCode.UNSAFE))
_EPILOG = f"""\
Each image is described by itself, in the order given; --together asks about all of them at once.
Of a video some frames are shown, with their times; it needs PyAV: pip install "vlmcore[video]".
An image that cannot be read is reported and the others are done. Answers go to standard output:
piece by piece to a terminal, as plain text to a pipe, one JSON object a line with --json.
Everything else goes to standard error.

{_EXIT_CODES}
"""
_SAMPLING = [each for each in SamplingStrategy if each is not SamplingStrategy.TRACKS]
_USUAL = FrameSampling(strategy=SamplingStrategy.UNIFORM)
_FIELDS = {
    "text": "--prompt",
    "max_frames": "--frames",
    "megapixels": "--max-megapixels",
    "max_pixels": "--max-megapixels",
    "longest_edge_px": "--longest-edge",
}


def add_command(commands: Any, *, load: LoadPredictor) -> None:
    """Add the command to *commands*; *load* loads its model."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "describe",
        help="describe images and videos, or answer a question about them",
        description="Describe images and videos, or answer a question about them.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "images",
        nargs="+",
        metavar="IMAGE",
        help="an image or a video: a path, a data: URL, or '-' for standard input",
    )
    _add_question(parser)
    _add_viewing(parser)
    add_sampling(parser)
    add_model(parser)
    _add_output(parser)
    parser.set_defaults(run=functools.partial(_run, parser=parser, load=load))


def _add_question(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("question")
    group.add_argument(
        "--prompt",
        action="append",
        metavar="TEXT",
        help=f"default: {PROMPT} Give it again to ask more about each image, which is looked at "
        "once; no answer depends on another",
    )
    group.add_argument("--system", default="", metavar="TEXT", help="the system text")
    group.add_argument(
        "--together", action="store_true", help="put all images into one prompt, and answer once"
    )


def _add_viewing(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what the model is shown")
    add_budget(group)
    group.add_argument(
        "--frames",
        type=int,
        metavar="N",
        help=f"frames of a video at most (default: {_USUAL.max_frames}); animations are "
        "shown as videos, too",
    )
    group.add_argument(
        "--sampling",
        choices=[each.value for each in _SAMPLING],
        default=_USUAL.strategy.value,
        metavar="HOW",
        help="which frames: uniform, scenes, motion, or hybrid of these; all but uniform read the "
        "whole video (default: %(default)s)",
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="one JSON object a line for each answer")
    add_structure(group)
    group.add_argument(
        "--no-stream", action="store_true", help="show an answer only when it is whole"
    )
    amount = group.add_mutually_exclusive_group()
    amount.add_argument("--quiet", "-q", action="store_true", help="no notes, only complaints")
    amount.add_argument("--verbose", "-v", action="store_true", help="how it ran and how long")


def _run(
    arguments: argparse.Namespace, *, parser: argparse.ArgumentParser, load: LoadPredictor
) -> int:
    terminal = Terminal.standard(quiet=arguments.quiet)
    try:
        questions = questions_about(arguments.images, together=arguments.together)
        texts = arguments.prompt or [PROMPT]
        describing = Describing(
            terminal=terminal,
            sink=_sink(arguments, terminal, several=len(questions) > 1, prompts=len(texts) > 1),
            prompts=[Prompt(text=text, system=arguments.system) for text in texts],
            options=options_of(arguments),
            load=functools.partial(load, arguments.model, **placement_of(arguments)),
            model=arguments.model,
            verbose=arguments.verbose,
            viewing=_viewing(arguments),
        )
    except ContractError as error:
        parser.error(f"{_option(error.field)}: {error.problem}")
    return describing.run(questions)


def _sink(
    arguments: argparse.Namespace, terminal: Terminal, *, several: bool, prompts: bool
) -> AnswerSink:
    if arguments.json:
        return JsonLines(terminal)
    streams = terminal.is_interactive and not arguments.no_stream and not arguments.repair
    text = Streaming if streams else PlainText
    return text(terminal, headings=several or prompts, prompts=prompts)


def _viewing(arguments: argparse.Namespace) -> Viewing:
    return Viewing(
        sampling=FrameSampling(
            max_frames=_USUAL.max_frames if arguments.frames is None else arguments.frames,
            strategy=SamplingStrategy(arguments.sampling),
        ),
        budget=budget_of(arguments),
        moves=arguments.frames is not None,
    )


def _option(field: str) -> str:
    """Name the option that a field was given by."""
    if field in {"IMAGE", "--together"}:
        return field
    return _FIELDS.get(field, f"--{field.replace('_', '-')}")
