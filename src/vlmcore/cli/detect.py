"""``vlmcore detect``: what labels name in each image, and where."""

from __future__ import annotations

import argparse
from typing import Any

import attrs

from vlmcore.cli._sources import ImageSource, questions_about
from vlmcore.cli.commands import ExitCode, Terminal, add_parser, option_error, write_bytes
from vlmcore.errors import ContractError, MediaError, ModelError
from vlmcore.media.encoding import encode_png
from vlmcore.vision.detections import Detections
from vlmcore.vision.documents import detections_to_document
from vlmcore.vlm.detector import DetectionOptions, Detector, split_labels
from vlmcore.vlm.detector_catalog import DEFAULT_DETECTOR, DETECTORS
from vlmcore.vlm.loading import load_detector
from vlmcore.vlm.placement import Dtype

__all__ = ["add_command"]

_DEFAULTS = DetectionOptions()
_OPTIONS = ("--labels", "--box-threshold", "--text-threshold", "--max-iou", "--max-detections")
_CODES = tuple(code for code in ExitCode if code is not ExitCode.UNSAFE)
_EPILOG = f"""
A line for each thing: its score, left, top, right and bottom in pixels, its label; with --json one
JSON object a line for each image. An image that cannot be read is reported and the others are done.

Models: {", ".join(spec.key for spec in DETECTORS)}.
"""


@attrs.frozen
class _Asked:
    """What is looked for, by which model, and how it is shown."""

    detector: Detector
    labels: tuple[str, ...]
    options: DetectionOptions
    arguments: argparse.Namespace


def add_command(commands: Any) -> None:
    """Add the command to *commands*."""
    parser = add_parser(
        commands,
        "detect",
        work=_work,
        summary="find what labels name in images, and where",
        epilog=_EPILOG,
        codes=_CODES,
        words=("IMAGE",),
    )
    parser.add_argument(
        "images",
        nargs="+",
        metavar="IMAGE",
        help="a path, a data: URL, or '-' for standard input",
    )
    parser.add_argument(
        "--labels", required=True, metavar="TEXT", help="what to look for, as 'a cup, a hand'"
    )
    _add_choice(parser)
    _add_model(parser)
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="one JSON object a line for each image")
    output.add_argument("-o", "--output", metavar="PNG", help="draw what was found, of one image")
    output.add_argument("--quiet", "-q", action="store_true", help="no notes, only complaints")


def _add_choice(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what of it to show")
    for option, kind, help_text in (
        ("--box-threshold", float, "lowest score, 0 to 1"),
        ("--text-threshold", float, "lowest score of a word, of models that score words"),
        ("--max-iou", float, "how much two of one label may overlap, 0 to 1"),
        ("--max-detections", int, "how many at most"),
    ):
        default = getattr(_DEFAULTS, option.removeprefix("--").replace("-", "_"))
        group.add_argument(
            option,
            type=kind,
            default=default,
            metavar="N",
            help=f"{help_text} (default: %(default)s)",
        )


def _add_model(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("model")
    group.add_argument(
        "--model",
        default=DEFAULT_DETECTOR,
        help="one of those below, a folder, or a hub id (default: %(default)s)",
    )
    group.add_argument(
        "--device", default="auto", help="auto, cpu, mps, cuda, cuda:1, xpu (default: %(default)s)"
    )
    names = [member.value for member in Dtype]
    group.add_argument(
        "--dtype",
        choices=names,
        default=names[0],
        metavar="DTYPE",
        help=f"{', '.join(names)} (default: %(default)s)",
    )


def _work(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    sources = [q.sources[0] for q in questions_about(arguments.images, together=False)]
    if arguments.output is not None and len(sources) > 1:
        raise ContractError("--output", f"draws one image, and {len(sources)} were given")
    try:
        labels, options = split_labels(arguments.labels), _options(arguments)
    except ContractError as error:
        field = error.field.partition("[")[0].replace("max_labels", "labels")
        raise option_error(ContractError(field, error.problem), *_OPTIONS) from None
    try:
        detector = load_detector(
            arguments.model, device=arguments.device, dtype=Dtype(arguments.dtype)
        )
    except ModelError as error:
        terminal.complain(f"vlmcore: {error}")
        return ExitCode.NO_MODEL
    except ContractError as error:
        raise option_error(error, "--device", "--dtype", "--model") from None
    with detector:
        asked = _Asked(detector, labels, options, arguments)
        done = [_show(source, asked, terminal) for source in sources]
    return ExitCode.DONE if all(done) else ExitCode.INCOMPLETE


def _options(arguments: argparse.Namespace) -> DetectionOptions:
    return DetectionOptions(
        box_threshold=arguments.box_threshold,
        text_threshold=arguments.text_threshold,
        max_iou=arguments.max_iou,
        max_detections=arguments.max_detections,
    )


def _show(source: ImageSource, asked: _Asked, terminal: Terminal) -> bool:
    try:
        opened = source.load()
        found = asked.detector.detect(opened.pixels, asked.labels, asked.options)
    except (MediaError, ModelError) as error:
        terminal.complain(f"vlmcore: {error}")
        return False
    arguments = asked.arguments
    if arguments.json:
        terminal.document({"image": source.name, **detections_to_document(found)})
    else:
        _write(source.name, found, terminal, is_one=len(arguments.images) == 1)
    if arguments.output is not None:
        write_bytes(arguments.output, encode_png(found.draw(opened.pixels)))
    return True


def _write(name: str, found: Detections, terminal: Terminal, *, is_one: bool) -> None:
    if not is_one:
        terminal.heading(name)
    for item in found:
        score = 0.0 if item.score is None else item.score
        box = " ".join(f"{side:.1f}" for side in item.place.bounds)
        terminal.line(f"{score:.3f}  {box}  {item.label}")
    if not len(found):
        terminal.note(f"{name}: nothing was found")
