"""Where ``vlmcore caption`` works: in this process, or on a cluster."""

from __future__ import annotations

import argparse

from vlmcore.errors import ContractError
from vlmcore.jobs.clusters import RayCluster

__all__ = ["add_engine", "cluster_of"]

_ENGINES = ("local", "ray")


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where ``vlmcore caption run`` works."""
    group = parser.add_argument_group("where it runs")
    group.add_argument(
        "--engine",
        choices=_ENGINES,
        default=_ENGINES[0],
        metavar="WHERE",
        help="in this process (local), or in the workers of a cluster of Ray (ray), whose journal "
        "and captions are here (default: %(default)s)",
    )
    group.add_argument(
        "--ray-address",
        metavar="ADDRESS",
        help="of the cluster: auto, HOST:PORT or ray://HOST:PORT (default: one of this machine)",
    )
    group.add_argument("--models", type=int, metavar="N", help="copies of the model (default: 1)")
    group.add_argument(
        "--cpus",
        type=float,
        metavar="X",
        help="processors, and threads, for each copy (default: 1)",
    )
    group.add_argument(
        "--gpus", type=float, metavar="X", help="for each copy; 0.5 lets two share one (default: 0)"
    )


def cluster_of(arguments: argparse.Namespace) -> RayCluster | None:
    """
    Take where the job runs; ``None`` for this process.

    Raises:
        ContractError: If an option is not right; its field is that of the cluster.
    """
    given = {
        "address": arguments.ray_address,
        "models": arguments.models,
        "cpus": arguments.cpus,
        "gpus": arguments.gpus,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if arguments.engine == "ray":
        return RayCluster(**given)
    for name in given:
        raise ContractError(name, "is for --engine ray")
    return None
