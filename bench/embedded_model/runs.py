"""What every training run does: tell the time, log, and save so that it can go on later."""

import dataclasses
import json
import pathlib
import time
from collections.abc import Sequence

import torch


@dataclasses.dataclass(kw_only=True)
class Run:
    """
    A run of a part of the training into a folder, for a time given beforehand.

    The time counts over restarts: a run that is started again goes on with the step and the
    schedule it had reached.
    """

    folder: pathlib.Path
    name: str
    budget_s: float
    step: int = 0
    spent_s: float = 0.0
    _started_s: float = dataclasses.field(default_factory=time.monotonic)

    @property
    def elapsed_s(self) -> float:
        """Seconds trained, those of earlier starts included."""
        return self.spent_s + time.monotonic() - self._started_s

    @property
    def progress(self) -> float:
        """The share of the time that has passed."""
        return self.elapsed_s / self.budget_s

    def log(self, **figures: float) -> None:
        """Print *figures* with step and time as a line of JSON, and append it to the run's log."""
        rounded = {name: round(value, 4) for name, value in figures.items()}
        line = json.dumps({"step": self.step, "elapsed_s": round(self.elapsed_s), **rounded})
        print(line, flush=True)
        with (self.folder / f"{self.name}.jsonl").open("a") as log:
            log.write(line + "\n")

    @property
    def path(self) -> pathlib.Path:
        """Where the run is saved."""
        return self.folder / f"{self.name}.pt"

    def save(self, modules: torch.nn.Module, optimizers: Sequence[torch.optim.Optimizer]) -> None:
        """Save weights, optimizers, step and time."""
        state = {
            "modules": modules.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in optimizers],
            "step": self.step,
            "spent_s": self.elapsed_s,
        }
        unfinished = self.path.with_suffix(".unfinished")
        torch.save(state, unfinished)
        unfinished.replace(self.path)

    def resume(self, modules: torch.nn.Module, optimizers: Sequence[torch.optim.Optimizer]) -> bool:
        """Go on from what was saved; return whether there was anything."""
        if not self.path.exists():
            return False
        state = torch.load(self.path, weights_only=True)
        modules.load_state_dict(state["modules"])
        for optimizer, saved in zip(optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.step, self.spent_s = state["step"], state["spent_s"]
        return True


def load_modules(path: pathlib.Path) -> dict[str, torch.Tensor]:
    """Return the weights that another run saved under *path*."""
    weights: dict[str, torch.Tensor] = torch.load(path, weights_only=True)["modules"]
    return weights
