"""
Two processes that train one model: each on its share of a batch, gradients averaged every step.

On two busy cores this is much faster than one process with two threads, whose threads wait for each
other in every product. Without ``RANK`` and ``WORLD_SIZE`` in the environment a process trains
alone.
"""

import dataclasses
import os
from collections.abc import Sequence

import torch
from torch import distributed


@dataclasses.dataclass(frozen=True)
class Team:
    """This process's place among those that train together."""

    rank: int
    size: int

    @classmethod
    def join(cls) -> "Team":
        """Return the team that the environment names, once all its processes are there."""
        rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
        if size > 1:
            distributed.init_process_group("gloo", rank=rank, world_size=size)
        return cls(rank, size)

    @property
    def first_seed(self) -> int:
        """How far this process's seeds are from those of the first one."""
        return self.rank << 33

    @property
    def is_first(self) -> bool:
        """Whether this process logs and saves."""
        return self.rank == 0

    def average(self, weights: Sequence[torch.Tensor], *, progress: float) -> float:
        """
        Replace the gradients of *weights* by their average over the team.

        Returns:
            The average *progress*, so that all set the same rates and stop at the same step.
        """
        if self.size == 1:
            return progress
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        flat = torch.cat(
            [*(gradient.flatten() for gradient in gradients), torch.tensor([progress])]
        )
        distributed.all_reduce(flat)
        flat /= self.size
        start = 0
        for gradient in gradients:
            gradient.copy_(flat[start : start + gradient.numel()].view_as(gradient))
            start += gradient.numel()
        return flat[-1].item()
