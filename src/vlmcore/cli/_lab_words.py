"""The words of ``vlmcore lab run`` and ``compare``: what is measured, and how."""

from __future__ import annotations

import argparse
from typing import Any

from vlmcore.errors import ContractError
from vlmcore.lab.loads import ClosedLoop, Load, OpenLoop
from vlmcore.lab.opening import TargetChoice
from vlmcore.lab.run_plans import CacheMode, RunPlan
from vlmcore.lab.schedules import Arrivals

__all__ = ["TARGET_HELP", "add_plan_words", "choice_of", "plan_of"]

TARGET_HELP = (
    "a model as 'vlmcore describe' takes it, or URL#model; options behind it, as "
    "'embedded,dtype=float32,decoding=compiled'"
)


def add_plan_words(parser: argparse.ArgumentParser, *, runs: int) -> None:
    """Add the words that make a plan."""
    parser.add_argument(
        "-o", "--output", default=".", metavar="FOLDER", help="where the artifact goes (default: .)"
    )
    parser.add_argument("--label", metavar="NAME", help="what its file is called by")
    _add_load(parser)
    group = parser.add_argument_group("requests")
    group.add_argument(
        "--runs", type=int, default=runs, metavar="N", help="of each case (default: %(default)s)"
    )
    group.add_argument(
        "--warm-ups",
        type=int,
        default=1,
        metavar="N",
        help="of each case before them, in no figure (default: %(default)s)",
    )
    group.add_argument(
        "--cache",
        choices=[mode.value for mode in CacheMode],
        default=CacheMode.COLD.value,
        help="what the target may have kept of earlier requests: 'unique' puts something new "
        "before each image, 'cold' says that nothing is kept, 'warm-prefix' that all is "
        "(default: %(default)s)",
    )
    group.add_argument(
        "--order-seed", type=int, default=0, metavar="N", help="of the order (default: 0)"
    )
    group.add_argument("--no-stream", action="store_true", help="have a server answer in one piece")
    group.add_argument(
        "--timeout", type=float, default=600.0, metavar="S", help="of a request (default: 600)"
    )
    group.add_argument(
        "--max-failures", type=int, metavar="N", help="failed requests that do not end the run"
    )
    group = parser.add_argument_group("answers")
    group.add_argument("--max-new-tokens", type=int, default=96, metavar="N", help="(default: 96)")
    group.add_argument(
        "--temperature", type=float, default=0.0, metavar="T", help="0 is greedy (default: 0)"
    )
    group.add_argument("--seed", type=int, metavar="N", help="of the sampling")
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="as a JSON object")
    output.add_argument("--quiet", "-q", action="store_true", help="no notes, only complaints")


def _add_load(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("load")
    one = group.add_mutually_exclusive_group()
    one.add_argument(
        "--clients",
        type=int,
        default=1,
        metavar="N",
        help="clients that each wait for an answer before they ask again (default: 1)",
    )
    one.add_argument(
        "--rate", type=float, metavar="HZ", help="requests a second, made when they are due"
    )
    group.add_argument(
        "--arrivals",
        choices=[each.value for each in Arrivals],
        default=Arrivals.POISSON.value,
        help="how they arrive (default: %(default)s)",
    )


def plan_of(arguments: argparse.Namespace) -> RunPlan:
    """
    Read a plan.

    Raises:
        ContractError: If a word is not as described; its field is the option.
    """
    generation: dict[str, Any] = {
        "max_new_tokens": arguments.max_new_tokens,
        "temperature": arguments.temperature,
    }
    if arguments.seed is not None:
        generation["seed"] = arguments.seed
    try:
        return RunPlan(
            load=_load(arguments),
            cache=CacheMode(arguments.cache),
            runs_per_case=arguments.runs,
            warm_ups_per_case=arguments.warm_ups,
            order_seed=arguments.order_seed,
            generation=generation,
            streamed=not arguments.no_stream,
            deadline_s=arguments.timeout,
            max_failures=arguments.max_failures,
        )
    except ContractError as error:
        raise ContractError(_OPTIONS.get(error.field, error.field), error.problem) from None


_OPTIONS = {
    "clients": "--clients",
    "rate_per_s": "--rate",
    "runs_per_case": "--runs",
    "warm_ups_per_case": "--warm-ups",
    "order_seed": "--order-seed",
    "deadline_s": "--timeout",
    "max_failures": "--max-failures",
}


def _load(arguments: argparse.Namespace) -> Load:
    if arguments.rate is None:
        return ClosedLoop(clients=arguments.clients)
    return OpenLoop(rate_per_s=arguments.rate, arrivals=Arrivals(arguments.arrivals))


def choice_of(words: str, *, name: str, option: str) -> TargetChoice:
    """
    Read a target.

    Raises:
        ContractError: If it is not written as described; its field is *option*.
    """
    try:
        return TargetChoice.of(words, name=name)
    except ContractError as error:
        raise ContractError(option, error.problem) from None
