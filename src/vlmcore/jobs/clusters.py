"""Where a job runs that one machine is too small for."""

from __future__ import annotations

import re

import attrs

from vlmcore._arrays import require_count, require_finite_between
from vlmcore.errors import ContractError

__all__ = ["RayCluster"]

_MOST = 1e6
_HOST_AND_PORT = re.compile(r"(?:ray://)?(?P<host>[\w.-]+|\[[0-9a-fA-F:.]+\]):(?P<port>\d{1,5})")


@attrs.frozen(kw_only=True)
class RayCluster:
    """
    A cluster of Ray, or this machine as one.

    The images have to be where each of its machines finds them, under the same paths; the journal
    and the captions are where the job was begun.

    Attributes:
        address: Where it is: ``"auto"`` for the one that this machine is part of,
            ``"10.0.0.1:6379"``, or ``"ray://10.0.0.1:10001"``. ``None`` makes one of this machine,
            for this job, or takes the one that this process is connected to.
        models: How many copies of the model there are, each in a process of its own.
        cpus: Processors that are set aside for each.
        gpus: GPUs that are set aside for each; a half lets two share one.

    Raises:
        ContractError: If the address is none, or a number is below what there can be.

    Example:
        >>> RayCluster(address="ray://10.0.0.1:10001", models=4, gpus=0.5).dialled
        ('10.0.0.1', 10001)
    """

    address: str | None = None
    models: int = 1
    cpus: float = 1.0
    gpus: float = 0.0

    def __attrs_post_init__(self) -> None:
        require_count(models=self.models)
        require_finite_between(0.0, _MOST, cpus=self.cpus, gpus=self.gpus)
        if self.address not in {None, "auto"} and self.dialled is None:
            problem = (
                f"got {self.address!r:.200}, expected 'auto', 'HOST:PORT' or 'ray://HOST:PORT'"
            )
            raise ContractError("address", problem)

    @property
    def dialled(self) -> tuple[str, int] | None:
        """The host and the port that *address* names; ``None`` if it names none."""
        found = _HOST_AND_PORT.fullmatch(self.address) if isinstance(self.address, str) else None
        if found is None or not 0 < int(found["port"]) < 1 << 16:
            return None
        return found["host"].strip("[]"), int(found["port"])
