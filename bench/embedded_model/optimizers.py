"""Muon for hidden matrices, AdamW for everything else, one schedule over wall-clock time."""

import math
from collections.abc import Iterable

import torch

_NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
"""Coefficients of the quintic iteration of Jordan et al. 2024 (Muon)."""
FINAL_SHARE = 0.05
"""The learning rate at the end of the schedule, as a share of the highest."""


class Muon(torch.optim.Optimizer):
    """
    Momentum whose step is made orthogonal, so that every direction of a matrix learns alike.

    Source:
        Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks".
    """

    def __init__(
        self, parameters: Iterable[torch.nn.Parameter], *, rate: float, momentum: float = 0.95
    ) -> None:
        super().__init__(parameters, {"lr": rate, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # noqa: ARG002 -- the signature of torch
        """Move every parameter that has a gradient."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                velocity = self.state[weight].setdefault("velocity", torch.zeros_like(weight))
                velocity.lerp_(weight.grad, 1 - group["momentum"])
                step = weight.grad.lerp(velocity, group["momentum"])
                stretch = max(1.0, weight.shape[0] / weight.shape[1]) ** 0.5
                weight.add_(orthogonal(step), alpha=-group["lr"] * stretch)


def orthogonal(matrix: torch.Tensor, *, steps: int = 5) -> torch.Tensor:
    """Return about the nearest matrix whose singular values are one."""
    a, b, c = _NEWTON_SCHULZ
    is_tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if is_tall else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if is_tall else x


def build_optimizers(
    model: torch.nn.Module,
    *,
    muon_rate: float,
    adam_rate: float,
    share_of: dict[str, float] | None = None,
) -> list[torch.optim.Optimizer]:
    """
    Return the optimizers of *model*.

    Args:
        model: Its parameters that need a gradient are optimized.
        muon_rate: Highest rate of the hidden matrices.
        adam_rate: Highest rate of embeddings, heads, norms and biases.
        share_of: Where a parameter's name starts with a key, its rate is multiplied by the value.
    """
    hidden: dict[float, list[torch.nn.Parameter]] = {}
    other: dict[float, list[torch.nn.Parameter]] = {}
    for name, weight in model.named_parameters():
        if not weight.requires_grad:
            continue
        share = next(
            (value for prefix, value in (share_of or {}).items() if name.startswith(prefix)), 1.0
        )
        is_hidden = weight.ndim == 2 and not any(part in name for part in ("embed", "head"))
        (hidden if is_hidden else other).setdefault(share, []).append(weight)
    optimizers: list[torch.optim.Optimizer] = []
    optimizers += [Muon(weights, rate=muon_rate * share) for share, weights in hidden.items()]
    if other:
        groups = [{"params": weights, "lr": adam_rate * share} for share, weights in other.items()]
        optimizers.append(torch.optim.AdamW(groups, betas=(0.9, 0.98), weight_decay=0.0))
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["highest"] = group["lr"]
    return optimizers


def set_rates(
    optimizers: Iterable[torch.optim.Optimizer], *, step: int, progress: float, warmup: int = 60
) -> None:
    """Set the rates for *step*: a warm-up, then a half cosine over *progress* from 0 to 1."""
    cosine = 0.5 * (1 + math.cos(math.pi * min(max(progress, 0.0), 1.0)))
    share = min(1.0, (step + 1) / warmup) * (FINAL_SHARE + (1 - FINAL_SHARE) * cosine)
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["highest"] * share
