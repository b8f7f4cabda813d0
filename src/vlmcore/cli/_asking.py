"""The options of commands that ask a model, and what is made of them."""

from __future__ import annotations

import argparse
import enum
from collections.abc import Iterable
from typing import Any

from vlmcore.cli._files import read_bytes, told_of
from vlmcore.contracts.json_text import read_json
from vlmcore.errors import ContractError
from vlmcore.limits import StructureLimits
from vlmcore.media.budgets import PixelBudget
from vlmcore.vlm.generation import GenerationOptions
from vlmcore.vlm.outputs import JsonOutput
from vlmcore.vlm.placement import Attention, Dtype, MemoryMode, Placement
from vlmcore.vlm.sources import EMBEDDED

__all__ = [
    "add_budget",
    "add_model",
    "add_sampling",
    "add_structure",
    "budget_of",
    "options_of",
    "placement_of",
]

_DEFAULTS = GenerationOptions()


def add_budget(group: Any) -> None:
    """Add how large the pictures are that the model is shown."""
    group.add_argument(
        "--max-megapixels", type=float, metavar="M", help="make larger pictures smaller"
    )
    group.add_argument(
        "--longest-edge", type=int, metavar="PX", help="the same, by the longer of width and height"
    )


def budget_of(arguments: argparse.Namespace) -> PixelBudget:
    """
    Take how large pictures are to be.

    Raises:
        ContractError: If a bound is none; its field is that of the budget.
    """
    bounds = {"longest_edge_px": arguments.longest_edge}
    if arguments.max_megapixels is None:
        return PixelBudget(**bounds)
    return PixelBudget.of_megapixels(arguments.max_megapixels, **bounds)


def add_sampling(parser: argparse.ArgumentParser) -> None:
    """Add how the model is to answer."""
    group = parser.add_argument_group("answer")
    group.add_argument(
        "--max-new-tokens",
        type=int,
        default=_DEFAULTS.max_new_tokens,
        metavar="N",
        help="longest answer, in tokens (default: %(default)s)",
    )
    group.add_argument(
        "--temperature",
        type=float,
        default=_DEFAULTS.temperature,
        metavar="T",
        help="0 takes the likeliest word each time, above 0 samples (default: %(default)s)",
    )
    group.add_argument(
        "--top-p",
        type=float,
        default=_DEFAULTS.top_p,
        metavar="P",
        help="sample from the likeliest words that have this probability (default: %(default)s)",
    )
    group.add_argument("--seed", type=int, metavar="N", help="seed of the sampling")


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add which model is asked, and where it is placed."""
    group = parser.add_argument_group("model")
    group.add_argument(
        "--model",
        default=EMBEDDED,
        help="'embedded', a key or label of 'vlmcore catalog vlm', a folder, a hub id, or one "
        "behind a server: http://127.0.0.1:8000/v1#model, openai:model (default: %(default)s)",
    )
    group.add_argument(
        "--device", default="auto", help="auto, cpu, mps, cuda, cuda:1, xpu (default: %(default)s)"
    )
    for option, kind in (("--dtype", Dtype), ("--memory", MemoryMode), ("--attention", Attention)):
        values = [member.value for member in _members(kind)]
        group.add_argument(
            option,
            choices=values,
            default=values[0],
            metavar=option.removeprefix("--").upper(),
            help=f"{', '.join(values)} (default: %(default)s)",
        )


def add_structure(group: Any) -> None:
    """Add what answers are to be that are no plain text."""
    structure = group.add_mutually_exclusive_group()
    structure.add_argument(
        "--schema",
        metavar="FILE",
        help="a JSON Schema that each answer has to fit, or '-' for standard input",
    )
    structure.add_argument(
        "--json-object", action="store_true", help="each answer has to be a JSON object"
    )
    group.add_argument(
        "--repair",
        action="store_true",
        help="send an answer that does not fit back once, to be mended; not shown as it is written",
    )


def options_of(arguments: argparse.Namespace) -> GenerationOptions:
    """
    Take how the model is to answer.

    Raises:
        ContractError: If something is not as it has to be; its field is that of the options.
    """
    return GenerationOptions(
        max_new_tokens=arguments.max_new_tokens,
        temperature=arguments.temperature,
        top_p=arguments.top_p,
        seed=arguments.seed,
        output=_output(arguments),
    )


def _output(arguments: argparse.Namespace) -> JsonOutput | None:
    """Take what the answers are to be; JSON is not streamed where it may be mended."""
    if arguments.schema is None and not arguments.json_object:
        if arguments.repair:
            raise ContractError("repair", "got it alone, expected --schema or --json-object too")
        return None
    schema = None if arguments.schema is None else _schema(arguments.schema)
    return JsonOutput(schema=schema, repair=arguments.repair)


def _schema(word: str) -> Any:
    try:
        data = read_bytes(word, most=StructureLimits().max_schema_bytes)
        with told_of(word):
            return read_json(data)
    except ContractError as error:
        raise ContractError("schema", str(error)) from None


def placement_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """
    Take where the model is placed, as arguments of `vlmcore.load_predictor`.

    Raises:
        ContractError: If the device is none.
    """
    placement = Placement(
        device=arguments.device,
        dtype=Dtype(arguments.dtype),
        memory=MemoryMode(arguments.memory),
        attention=Attention(arguments.attention),
    )
    return {
        "device": placement.device,
        "dtype": placement.dtype,
        "memory": placement.memory,
        "attention": placement.attention,
    }


def _members(kind: type[enum.Enum]) -> Iterable[enum.Enum]:
    return iter(kind)
