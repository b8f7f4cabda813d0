"""
What each cell and each patch of a picture holds, as numbers: the targets of the vision part.

A picture has 3 by 3 cells, one image token each, and 9 by 9 patches. The cell that holds the
centre of a thing holds the thing; what else the thing covers counts as empty. A patch holds the
thing whose box covers its centre.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from bench.embedded_model.scenes import Scene
from bench.embedded_model.vocabulary import COLOURS, GLYPHS, SHAPES

KINDS: tuple[str, ...] = ("empty", "unclear", *SHAPES, *GLYPHS)
HUES: tuple[str, ...] = ("none", *COLOURS, "grey")
SIZES: tuple[str, ...] = ("none", "small", "large")
CELLS = 9
PATCHES_A_SIDE = 9
FACTS: tuple[int, ...] = (len(KINDS), len(HUES), len(SIZES), len(HUES))
"""Number of values of each fact: kind, colour, size, background."""
UNSURE = -1
"""A fact that is not to be learnt."""
_CODE_SEED = 20_26


def cell_facts(scene: Scene) -> npt.NDArray[np.int64]:
    """Return kind, colour, size and background of each cell, shape ``[9, 4]``."""
    facts = np.zeros((CELLS, 4), dtype=np.int64)
    facts[:] = _empty(scene)
    for thing in scene.things:
        facts[thing.cell, :3] = _facts_of(thing.name, thing.colour, is_large=thing.is_large)
    return facts


def patch_facts(scene: Scene) -> npt.NDArray[np.int64]:
    """Return kind, colour, size and background of each patch, shape ``[81, 4]``."""
    facts = np.zeros((PATCHES_A_SIDE, PATCHES_A_SIDE, 4), dtype=np.int64)
    facts[:] = _empty(scene)
    centres = (np.arange(PATCHES_A_SIDE) + 0.5) / PATCHES_A_SIDE
    short_px = min(scene.width_px, scene.height_px)
    for thing in scene.things:
        half_x, half_y = (
            thing.extent * short_px / side / 2 for side in (scene.width_px, scene.height_px)
        )
        covered_x = np.abs(centres - thing.centre_x) <= half_x
        covered_y = np.abs(centres - thing.centre_y) <= half_y
        facts[covered_y[:, None] & covered_x[None, :], :3] = _facts_of(
            thing.name, thing.colour, is_large=thing.is_large
        )
    return facts.reshape(-1, 4)


def _empty(scene: Scene) -> tuple[int, int, int, int]:
    if scene.kind == "unclear":
        return KINDS.index("unclear"), 0, 0, 0
    return 0, 0, 0, HUES.index(scene.background)


def _facts_of(name: str, colour: str, *, is_large: bool) -> tuple[int, int, int]:
    return KINDS.index(name), HUES.index(colour), SIZES.index("large" if is_large else "small")


class CellCodes:
    """
    The fixed code that an image token carries: the sum of one direction for each fact of its cell.

    The directions are orthonormal and decided by a seed, so that the vision part can learn to write
    them while the language part learns to read them.
    """

    def __init__(self, width: int) -> None:
        generator = torch.Generator().manual_seed(_CODE_SEED)
        directions, _ = torch.linalg.qr(torch.randn(width, width, generator=generator))
        counts = (*FACTS, CELLS)
        if sum(counts) > width:
            raise ValueError(f"width: got {width}, expected at least {sum(counts)} directions")
        self.tables: Sequence[torch.Tensor] = torch.split(directions[: sum(counts)], counts)

    def encode(self, facts: torch.Tensor) -> torch.Tensor:
        """Return the codes ``[B, 9, width]`` of *facts* ``[B, 9, 4]``."""
        codes = self.tables[-1].expand(facts.shape[0], -1, -1)
        for column, table in enumerate(self.tables[:-1]):
            codes = codes + table[facts[..., column]]
        return codes

    def scores(self, tokens: torch.Tensor) -> list[torch.Tensor]:
        """Return how much of each direction *tokens* ``[B, 9, width]`` hold, one tensor a fact."""
        return [tokens @ table.T for table in self.tables[:-1]]
