"""Pictures of scenes as the model sees them, and what they hold, drawn by worker processes."""

import pathlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from bench.embedded_model.cells import UNSURE, cell_facts, patch_facts
from bench.embedded_model.drawing import draw_scene
from bench.embedded_model.folder import IMAGE_SIDE_PX
from bench.embedded_model.scenes import HELD_OUT_START, TRAINING_MIX, Scene, sample_scene

PictureBatch = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]
"""Pixels ``[B, 72, 72, 3]``, facts of patches ``[B, 81, 4]`` and cells ``[B, 9, 4]``, seeds."""


def squeeze(image: Image.Image) -> npt.NDArray[np.uint8]:
    """Return *image* as the processor sees it: squeezed to a square."""
    square = image.convert("RGB").resize((IMAGE_SIDE_PX, IMAGE_SIDE_PX), Image.Resampling.LANCZOS)
    return np.asarray(square)


def normalize(pixels: torch.Tensor) -> torch.Tensor:
    """Return uint8 pixels ``[B, H, W, C]`` as the model takes them, ``[B, C, H, W]``, -1 to 1."""
    return (pixels.permute(0, 3, 1, 2).float() / 127.5 - 1.0).contiguous()


class Pictures(IterableDataset[PictureBatch]):
    """Batches of pictures, one seed after the other, each seed drawn once."""

    def __init__(
        self,
        *,
        first_seed: int,
        batch_size: int,
        fonts: Sequence[pathlib.Path],
        mix: Mapping[str, float] = TRAINING_MIX,
    ) -> None:
        if not 0 <= first_seed < HELD_OUT_START:
            raise ValueError(
                f"first_seed: got {first_seed}, expected a seed of training, under {HELD_OUT_START}"
            )
        self._first_seed, self._batch_size, self._fonts, self._mix = (
            first_seed,
            batch_size,
            fonts,
            mix,
        )

    def __iter__(self) -> Iterator[PictureBatch]:
        """Yield batches for ever."""
        worker = get_worker_info()
        index, stride = (worker.id, worker.num_workers) if worker else (0, 1)
        while True:
            start = self._first_seed + index * self._batch_size
            scenes = [
                sample_scene(start + offset, mix=self._mix) for offset in range(self._batch_size)
            ]
            yield picture_batch(scenes, self._fonts)
            index += stride


def picture_batch(scenes: Sequence[Scene], fonts: Sequence[pathlib.Path]) -> PictureBatch:
    """
    Draw *scenes* and return them with what they hold.

    The facts of cells are -1 where the cell of a large shape is a matter of taste: there only the
    answers teach.
    """
    pixels = np.stack([squeeze(draw_scene(scene, fonts=fonts)) for scene in scenes])
    return (
        torch.from_numpy(pixels),
        torch.from_numpy(np.stack([patch_facts(scene) for scene in scenes])),
        torch.from_numpy(np.stack([_sure_cell_facts(scene) for scene in scenes])),
        torch.tensor([scene.seed for scene in scenes]),
    )


def _sure_cell_facts(scene: Scene) -> npt.NDArray[np.int64]:
    facts = cell_facts(scene)
    if any(thing.is_between_cells for thing in scene.things):
        facts[:] = UNSURE
    return facts


def picture_loader(pictures: Pictures, *, workers: int) -> Iterator[PictureBatch]:
    """Return an endless iterator over *pictures*, drawn by *workers* processes."""
    return iter(
        DataLoader(
            pictures, batch_size=None, num_workers=workers, prefetch_factor=4 if workers else None
        )
    )
