"""The words of ``vlmcore caption``: its options, and the plan that they say."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from vlmcore.cli._asking import (
    add_budget,
    add_model,
    add_sampling,
    add_structure,
    budget_of,
    options_of,
)
from vlmcore.cli._caption_engines import add_engine
from vlmcore.cli._describing import PROMPT
from vlmcore.errors import ContractError
from vlmcore.jobs.items import ItemSource
from vlmcore.jobs.plans import CaptionPlan
from vlmcore.jobs.prompts import CaptionPrompt
from vlmcore.jobs.sinks.settings import ExistingCaption, NameClash, Sidecars, Table
from vlmcore.jobs.sinks.tables import TableKind
from vlmcore.jobs.sources.opening import SourceKind, open_source
from vlmcore.jobs.templates import CaptionTemplate, Cut, PromptTemplate
from vlmcore.vlm.generation import GenerationOptions

__all__ = ["add_words", "option_of", "plan_of"]

_FIELDS = {
    "text": "--template",
    "strip_phrases": "--strip",
    "patterns": "--glob",
    "recursive": "--no-recursive",
    "image": "--image-field",
    "id": "--id-field",
    "root": "--image-root",
    "folder": "--caption-folder",
    "suffix": "--extension",
    "near_duplicates": "--skip-similar",
    "prompts": "--ask",
    "name": "--ask",
    "megapixels": "--max-megapixels",
    "max_pixels": "--max-megapixels",
    "longest_edge_px": "--longest-edge",
    "patience_s": "--patience",
    "address": "--ray-address",
}


def add_words(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``vlmcore caption run``."""
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="a folder; a list of paths (.txt); records (.jsonl, .parquet); archives of WebDataset "
        "(.tar); or a pattern, as 'photos/*.jpg'",
    )
    _add_source(parser)
    _add_prompts(parser)
    _add_places(parser)
    _add_template(parser)
    add_budget(parser.add_argument_group("what the model is shown"))
    add_sampling(parser)
    add_structure(parser.add_argument_group("structure"))
    add_model(parser)
    _add_run(parser)
    add_engine(parser)


def _add_source(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("images")
    group.add_argument(
        "--from",
        dest="kind",
        choices=[kind.value for kind in SourceKind],
        metavar="KIND",
        help="what SOURCE is, if its name does not say so: folder, list, jsonl, parquet, tar",
    )
    group.add_argument(
        "--glob",
        action="append",
        metavar="PATTERN",
        help="of a folder, only names such as '*.png' or paths such as 'day-?/*'; may be repeated",
    )
    group.add_argument("--no-recursive", action="store_true", help="do not look into sub-folders")
    group.add_argument(
        "--image-root", metavar="FOLDER", help="where the paths of a list begin (default: its own)"
    )
    group.add_argument("--image-field", metavar="NAME", help="the field of records with the image")
    group.add_argument("--id-field", metavar="NAME", help="the field that records are known by")


def _add_prompts(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("question")
    group.add_argument("--prompt", metavar="TEXT", help=f"default: {PROMPT}")
    group.add_argument(
        "--ask",
        action="append",
        nargs=2,
        metavar=("NAME", "TEXT"),
        help="one of several questions, by a name: its answer is a column, {NAME} in --template",
    )
    group.add_argument("--system", default="", metavar="TEXT", help="the system text")
    group.add_argument(
        "--prompt-fields",
        action="store_true",
        help="questions have fields: {stem}, {folder}, {width}, {height}",
    )


def _add_places(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("where captions go (default: a file beside each image)")
    group.add_argument(
        "-o",
        "--output",
        action="append",
        metavar="FILE",
        help="a table, .jsonl or .parquet; may be repeated",
    )
    group.add_argument(
        "--sidecars", action="store_true", help="a file beside each image, also with --output"
    )
    group.add_argument(
        "--caption-folder", metavar="FOLDER", help="caption files go there, and not beside images"
    )
    group.add_argument(
        "--extension", default=".txt", metavar=".EXT", help="of caption files (default: .txt)"
    )
    group.add_argument(
        "--existing",
        choices=[each.value for each in ExistingCaption],
        default=ExistingCaption.SKIP.value,
        metavar="HOW",
        help="caption files that are there already: skip, overwrite, append, prepend "
        "(default: %(default)s)",
    )
    group.add_argument(
        "--clash",
        choices=[each.value for each in NameClash],
        default=NameClash.REFUSE.value,
        metavar="HOW",
        help="a.jpg and a.png both want a.txt: refuse, or disambiguate, which makes a.jpg.txt "
        "(default: %(default)s)",
    )
    group.add_argument(
        "--separator", metavar="TEXT", help="between several texts in a file (default: a new line)"
    )


def _add_template(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is made of answers (never asks the model again)")
    group.add_argument(
        "--trigger", default="", metavar="WORD", help="comes first, if it is not there"
    )
    group.add_argument("--prefix", default="", metavar="TEXT", help="before each caption")
    group.add_argument("--suffix", default="", metavar="TEXT", help="behind each caption")
    group.add_argument(
        "--template", metavar="TEXT", help="the whole, with {caption} or {NAME}, {stem}, {folder}"
    )
    group.add_argument(
        "--strip",
        action="append",
        metavar="PHRASE",
        help="taken off the beginning, as 'The image shows'; may be repeated",
    )
    group.add_argument("--strip-full-stop", action="store_true", help="no full stop at the end")
    group.add_argument("--keep-lines", action="store_true", help="captions may have several lines")
    group.add_argument("--max-characters", type=int, metavar="N", help="of each answer")
    group.add_argument(
        "--cut",
        choices=[each.value for each in Cut],
        default=Cut.WORD.value,
        metavar="WHERE",
        help="after a word, or after a sentence (default: %(default)s)",
    )


def _add_run(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("run")
    group.add_argument(
        "--batch-size", type=int, default=8, metavar="N", help="of a model here (default: 8)"
    )
    group.add_argument(
        "--in-flight",
        type=int,
        default=64,
        metavar="N",
        help="calls at once at a server, at most; fewer when it says no (default: 64)",
    )
    group.add_argument(
        "--patience",
        type=float,
        default=600.0,
        metavar="S",
        help="seconds to wait for a server that is away (default: 600)",
    )
    group.add_argument("--retry-failed", action="store_true", help="try again what failed before")
    group.add_argument(
        "--reuse-identical", action="store_true", help="ask once about images of the same pixels"
    )
    group.add_argument(
        "--skip-similar",
        type=int,
        metavar="BITS",
        help="skip images that look like an earlier one: so many of 64 bits may differ, as 4",
    )
    group.add_argument("--json", action="store_true", help="tell how it ended as a JSON object")
    group.add_argument("--quiet", "-q", action="store_true", help="no notes, only complaints")


def plan_of(arguments: argparse.Namespace) -> CaptionPlan:
    """
    Take what is to be done.

    Raises:
        ContractError: If an option is not right; its field is that of the plan.
        JobSourceError: If the source is none.
    """
    source = _source(arguments)
    tables = tuple(_table(word) for word in arguments.output or ())
    return CaptionPlan(
        source=source,
        prompts=_prompts(arguments),
        sidecars=_sidecars(arguments, is_needed=not tables),
        tables=tables,
        template=_template(arguments),
        budget=budget_of(arguments),
        retry_failed=arguments.retry_failed,
        reuse_identical=arguments.reuse_identical,
        near_duplicates=arguments.skip_similar,
        batch_size=arguments.batch_size,
        in_flight=arguments.in_flight,
        patience_s=arguments.patience,
    )


def option_of(field: str) -> str:
    """Name the option that a field was given by."""
    return _FIELDS.get(field, f"--{field.replace('_', '-')}")


def _source(arguments: argparse.Namespace) -> ItemSource:
    given: dict[str, Any] = {
        "patterns": arguments.glob,
        "recursive": False if arguments.no_recursive else None,
        "root": None if arguments.image_root is None else Path(arguments.image_root),
        "image": arguments.image_field,
        "id": arguments.id_field,
    }
    options = {name: value for name, value in given.items() if value is not None}
    kind = None if arguments.kind is None else SourceKind(arguments.kind)
    return open_source(arguments.source, kind=kind, **options)


def _prompts(arguments: argparse.Namespace) -> tuple[CaptionPrompt, ...]:
    options = options_of(arguments)
    if arguments.ask and arguments.prompt is not None:
        raise ContractError("prompt", "got one beside --ask, expected one or the other")
    if not arguments.ask:
        text = PROMPT if arguments.prompt is None else arguments.prompt
        return (_prompt(arguments, "caption", text, options),)
    return tuple(_prompt(arguments, name, text, options) for name, text in arguments.ask)


def _prompt(
    arguments: argparse.Namespace, name: str, text: str, options: GenerationOptions
) -> CaptionPrompt:
    return CaptionPrompt(
        name=name,
        text=PromptTemplate(text=text) if arguments.prompt_fields else text,
        system=arguments.system,
        options=options,
    )


def _table(word: str) -> Table:
    try:
        return Table(path=Path(word), kind=TableKind.of(word))
    except ContractError as error:
        raise ContractError("output", error.problem) from None


def _sidecars(arguments: argparse.Namespace, *, is_needed: bool) -> Sidecars | None:
    folder = arguments.caption_folder
    if not is_needed and not arguments.sidecars and folder is None:
        return None
    separator = arguments.separator
    return Sidecars(
        folder=None if folder is None else Path(folder),
        suffix=arguments.extension,
        existing=ExistingCaption(arguments.existing),
        clash=NameClash(arguments.clash),
        separator="\n" if separator is None else separator.replace("\\n", "\n"),
    )


def _template(arguments: argparse.Namespace) -> CaptionTemplate:
    return CaptionTemplate(
        prefix=arguments.prefix,
        suffix=arguments.suffix,
        text=arguments.template,
        trigger=arguments.trigger,
        strip_phrases=tuple(arguments.strip or ()),
        strip_full_stop=arguments.strip_full_stop,
        keep_lines=arguments.keep_lines,
        max_characters=arguments.max_characters,
        cut=Cut(arguments.cut),
    )
