"""The words of ``vlmcore lab run``, ``compare`` and ``sweep``: what is measured, and how."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import Any

from vlmcore.errors import ContractError
from vlmcore.lab.loads import ClosedLoop, Load, OpenLoop
from vlmcore.lab.opening import TargetChoice
from vlmcore.lab.run_plans import CacheMode, RunPlan
from vlmcore.lab.schedules import Arrivals
from vlmcore.lab.totals import Objective

__all__ = ["TARGET_HELP", "add_plan_words", "choice_of", "plan_of", "plans_of"]

TARGET_HELP = (
    "a model as 'vlmcore describe' takes it, or URL#model; options behind it, as "
    "'embedded,dtype=float32,decoding=compiled'"
)


def add_plan_words(parser: argparse.ArgumentParser, *, runs: int, is_sweep: bool = False) -> None:
    """Add the words that make a plan, or a plan for each load of a sweep."""
    parser.add_argument(
        "-o", "--output", default=".", metavar="FOLDER", help="where the artifact goes (default: .)"
    )
    parser.add_argument("--label", metavar="NAME", help="what its file is called by")
    _add_load(parser, is_sweep=is_sweep)
    _add_requests(parser, runs=runs)
    _add_answers(parser)
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="as a JSON object")
    output.add_argument("--quiet", "-q", action="store_true", help="no notes, only complaints")


def _add_requests(parser: argparse.ArgumentParser, *, runs: int) -> None:
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


def _add_answers(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("answers")
    group.add_argument("--max-new-tokens", type=int, default=96, metavar="N", help="(default: 96)")
    group.add_argument(
        "--temperature", type=float, default=0.0, metavar="T", help="0 is greedy (default: 0)"
    )
    group.add_argument("--seed", type=int, metavar="N", help="of the sampling")
    group.add_argument(
        "--slo",
        action="append",
        default=[],
        metavar="NAME=BOUND",
        help="what a good request keeps to, as 'ttft=200' in ms, or 'rate=30' tokens a second; "
        "several have to be kept together",
    )


def _add_load(parser: argparse.ArgumentParser, *, is_sweep: bool) -> None:
    group = parser.add_argument_group("load")
    one = group.add_mutually_exclusive_group()
    if is_sweep:
        one.add_argument(
            "--clients",
            default="1,2,4,8",
            metavar="N,N,...",
            help="loads of clients that each wait for an answer before they ask again "
            "(default: %(default)s)",
        )
        one.add_argument(
            "--rate", metavar="HZ,HZ,...", help="loads of requests a second, made when they are due"
        )
    else:
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
    return _plan(arguments, lambda: _load(arguments, arguments.clients, arguments.rate))


def plans_of(arguments: argparse.Namespace) -> list[RunPlan]:
    """
    Read a plan for each load of a sweep.

    Raises:
        ContractError: If a word is not as described, or a load is there twice; its field is the
            option.
    """
    if arguments.rate is None:
        pairs = [(count, None) for count in _numbers("--clients", arguments.clients, int)]
    else:
        pairs = [(None, rate) for rate in _numbers("--rate", arguments.rate, float)]
    return [_plan(arguments, functools.partial(_load, arguments, *pair)) for pair in pairs]


def _numbers(option: str, words: str, kind: Callable[[str], Any]) -> list[Any]:
    try:
        found = [kind(word) for word in words.split(",")]
    except ValueError:
        found = []
    if not found or len(set(found)) < len(found):
        problem = f"got {words!r:.200}, expected different numbers with commas between them"
        raise ContractError(option, problem)
    return found


def _plan(arguments: argparse.Namespace, load: Callable[[], Load]) -> RunPlan:
    generation: dict[str, Any] = {
        "max_new_tokens": arguments.max_new_tokens,
        "temperature": arguments.temperature,
    }
    if arguments.seed is not None:
        generation["seed"] = arguments.seed
    try:
        return RunPlan(
            load=load(),
            cache=CacheMode(arguments.cache),
            runs_per_case=arguments.runs,
            warm_ups_per_case=arguments.warm_ups,
            order_seed=arguments.order_seed,
            generation=generation,
            streamed=not arguments.no_stream,
            deadline_s=arguments.timeout,
            max_failures=arguments.max_failures,
            goals=dict(_goal(words) for words in arguments.slo),
        )
    except ContractError as error:
        raise ContractError(_OPTIONS.get(error.field, error.field), error.problem) from None


def _goal(words: str) -> tuple[str, float]:
    name, _, bound = words.partition("=")
    metric = name if "/" in name else f"{name}/1"
    try:
        limit = float(bound)
    except ValueError:
        raise ContractError("--slo", f"got {words!r:.200}, expected NAME=BOUND") from None
    try:
        objective = Objective(metric=metric, bound=limit)
    except ContractError as error:
        raise ContractError("--slo", error.problem) from None
    return objective.metric, objective.bound


_OPTIONS = {
    "clients": "--clients",
    "rate_per_s": "--rate",
    "runs_per_case": "--runs",
    "warm_ups_per_case": "--warm-ups",
    "order_seed": "--order-seed",
    "deadline_s": "--timeout",
    "max_failures": "--max-failures",
}


def _load(arguments: argparse.Namespace, clients: int | None, rate: float | None) -> Load:
    if rate is None:
        return ClosedLoop(clients=1 if clients is None else clients)
    return OpenLoop(rate_per_s=rate, arrivals=Arrivals(arguments.arrivals))


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
