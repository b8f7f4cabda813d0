"""
Part 3: put vision and language together and train them jointly on drawn scenes.

Run: ``python -m bench.embedded_model.train_joint --minutes 40 --folder RUN_FOLDER``

RUN_FOLDER holds what the first two parts saved; the model's folder is written to RUN_FOLDER/model.
"""

import argparse
import pathlib
from collections.abc import Iterator, Sequence

import torch
from torch.utils.data import DataLoader, IterableDataset
from transformers import Idefics3ForConditionalGeneration

from bench.embedded_model.cells import CellCodes
from bench.embedded_model.folder import (
    WIDTH,
    build_config,
    build_model,
    build_processor,
    save_folder,
    tokenizer_of,
)
from bench.embedded_model.language import answer_accuracy, answer_loss
from bench.embedded_model.lessons import LessonBatch, Lessons, Teacher
from bench.embedded_model.optimizers import build_optimizers, set_rates
from bench.embedded_model.pictures import PictureBatch, normalize, picture_batch
from bench.embedded_model.runs import Run, load_modules
from bench.embedded_model.scenes import HELD_OUT_START, sample_scene
from bench.embedded_model.team import Team
from bench.embedded_model.vision import (
    PatchHeads,
    encode_patches,
    patch_loss,
    token_accuracy,
    token_loss,
)

_CHECK_EVERY = 150
_CHECKED_LESSONS = 240
_FIRST_SEED = 1 << 36
_FIRST_CHECKED_SEED = HELD_OUT_START - 5000
_SEEN_WEIGHT, _TOLD_WEIGHT = 0.3, 1.0
_TEXT_SHARE = 0.6
"""The language part has less left to learn: a share of the rates of the rest."""


class DrawnLessons(IterableDataset[tuple[PictureBatch, LessonBatch]]):
    """Batches of lessons with their pictures drawn."""

    def __init__(self, lessons: Lessons, fonts: Sequence[pathlib.Path]) -> None:
        self._lessons, self._fonts = lessons, fonts

    def __iter__(self) -> Iterator[tuple[PictureBatch, LessonBatch]]:
        """Yield batches for ever."""
        for seeds, batch in self._lessons:
            yield picture_batch([sample_scene(seed) for seed in seeds], self._fonts), batch


def main() -> None:
    """Train for the time given."""
    options = _parse()
    torch.set_num_threads(options.threads)
    team = Team.join()
    tokenizer = tokenizer_of(options.folder)
    model = build_model(build_config(tokenizer), seed=options.seed)
    trained = _trained_parts(model)
    optimizers = build_optimizers(
        trained,
        muon_rate=options.muon_rate,
        adam_rate=options.adam_rate,
        share_of={"text": _TEXT_SHARE, "lm_head": _TEXT_SHARE},
    )
    run = Run(folder=options.folder, name="joint", budget_s=options.minutes * 60)
    if not run.resume(trained, optimizers):
        _load_parts(trained, options.folder)
    codes, processor = CellCodes(WIDTH), build_processor(tokenizer)
    checked_lessons = Lessons(
        Teacher(tokenizer), first_seed=_FIRST_CHECKED_SEED, batch_size=_CHECKED_LESSONS
    )
    checked = next(iter(DrawnLessons(checked_lessons, options.font)))
    lessons = Lessons(
        Teacher(tokenizer, questions_a_lesson=options.questions),
        first_seed=_FIRST_SEED + team.first_seed + run.step * options.batch,
        batch_size=options.batch,
    )
    for drawn, batch in _loader(lessons, options):
        trained.zero_grad(set_to_none=True)
        loss = _loss(model, trained["heads"], drawn, batch, codes)
        loss.backward()
        progress = team.average(list(trained.parameters()), progress=run.progress)
        if progress >= 1:
            break
        set_rates(optimizers, step=run.step, progress=progress)
        torch.nn.utils.clip_grad_norm_(trained.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
        run.step += 1
        if run.step % _CHECK_EVERY == 0 and team.is_first:
            _check(run, model, checked, codes)
            run.save(trained, optimizers)
            save_folder(model, processor, options.folder / "model", is_half=True)
    if team.is_first:
        _check(run, model, checked, codes)
        run.save(trained, optimizers)
        save_folder(model, processor, options.folder / "model", is_half=True)


def _loader(
    lessons: Lessons, options: argparse.Namespace
) -> DataLoader[tuple[PictureBatch, LessonBatch]]:
    return DataLoader(
        DrawnLessons(lessons, options.font),
        batch_size=None,
        num_workers=options.workers,
        prefetch_factor=4,
    )


def _trained_parts(model: Idefics3ForConditionalGeneration) -> torch.nn.ModuleDict:
    return torch.nn.ModuleDict(
        {
            "vision": model.model.vision_model,
            "connector": model.model.connector,
            "heads": PatchHeads(model.config.vision_config.hidden_size),
            "text": model.model.text_model,
            "lm_head": model.lm_head,
        }
    )


def _load_parts(trained: torch.nn.ModuleDict, folder: pathlib.Path) -> None:
    weights = load_modules(folder / "vision.pt") | load_modules(folder / "language.pt")
    trained.load_state_dict(weights)


def _loss(
    model: Idefics3ForConditionalGeneration,
    heads: torch.nn.Module,
    drawn: PictureBatch,
    batch: LessonBatch,
    codes: CellCodes,
) -> torch.Tensor:
    pixels, patches, cells, _ = drawn
    features = encode_patches(model, normalize(pixels))
    tokens = model.model.connector(features)
    seen = patch_loss(heads(features), patches)
    told = token_loss(tokens, cells, codes)
    return answer_loss(model, batch, tokens) + _SEEN_WEIGHT * seen + _TOLD_WEIGHT * told


@torch.no_grad()
def _check(
    run: Run,
    model: Idefics3ForConditionalGeneration,
    checked: tuple[PictureBatch, LessonBatch],
    codes: CellCodes,
) -> None:
    (pixels, _, cells, _), batch = checked
    tokens = model.model.connector(encode_patches(model, normalize(pixels)))
    run.log(**token_accuracy(tokens, cells, codes), **answer_accuracy(model, batch, tokens))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--minutes", type=float, default=40)
    parser.add_argument("--font", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--questions", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--muon-rate", type=float, default=0.01)
    parser.add_argument("--adam-rate", type=float, default=1e-3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
