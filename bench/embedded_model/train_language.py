"""
Part 2: train the language part alone on cells written as codes, without a picture drawn.

Run: ``python -m bench.embedded_model.train_language --minutes 20 --folder RUN_FOLDER``
"""

import argparse
import pathlib

import torch
from torch.utils.data import DataLoader

from bench.embedded_model.cells import CellCodes, cell_facts
from bench.embedded_model.folder import WIDTH, build_config, build_model, tokenizer_of
from bench.embedded_model.language import answer_accuracy, answer_loss
from bench.embedded_model.lessons import Lessons, Teacher
from bench.embedded_model.optimizers import build_optimizers, set_rates
from bench.embedded_model.runs import Run
from bench.embedded_model.scenes import HELD_OUT_START, sample_scene

_CHECK_EVERY = 100
_CHECKED_LESSONS = 300
_FIRST_SEED = 1 << 34


def main() -> None:
    """Train for the time given."""
    options = _parse()
    options.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(options.threads)
    tokenizer = tokenizer_of(options.folder)
    model = build_model(build_config(tokenizer), seed=options.seed)
    teacher, codes = Teacher(tokenizer), CellCodes(WIDTH)
    trained = torch.nn.ModuleDict({"text": model.model.text_model, "lm_head": model.lm_head})
    optimizers = build_optimizers(trained, muon_rate=options.muon_rate, adam_rate=options.adam_rate)
    run = Run(folder=options.folder, name="language", budget_s=options.minutes * 60)
    run.resume(trained, optimizers)
    checked = next(
        iter(Lessons(teacher, first_seed=HELD_OUT_START - 5000, batch_size=_CHECKED_LESSONS))
    )
    lessons = Lessons(
        teacher, first_seed=_FIRST_SEED + run.step * options.batch, batch_size=options.batch
    )
    noise = torch.Generator().manual_seed(options.seed + run.step)
    for seeds, batch in DataLoader(lessons, batch_size=None, num_workers=1, prefetch_factor=4):
        if run.progress >= 1:
            break
        set_rates(optimizers, step=run.step, progress=run.progress)
        tokens = codes_of(seeds, codes)
        spread = options.noise * torch.rand(len(tokens), 1, 1, generator=noise)
        tokens = tokens + spread * torch.randn(tokens.shape, generator=noise)
        loss = answer_loss(model, batch, tokens)
        trained.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
        run.step += 1
        if run.step % _CHECK_EVERY == 0:
            run.log(
                loss=loss.item(), **answer_accuracy(model, checked[1], codes_of(checked[0], codes))
            )
            run.save(trained, optimizers)
    run.save(trained, optimizers)


def codes_of(seeds: list[int], codes: CellCodes) -> torch.Tensor:
    """Return the image tokens that the pictures of *seeds* ought to give."""
    facts = torch.stack([torch.from_numpy(cell_facts(sample_scene(seed))) for seed in seeds])
    return codes.encode(facts)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--batch", type=int, default=48)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--noise", type=float, default=0.15)
    parser.add_argument("--muon-rate", type=float, default=0.02)
    parser.add_argument("--adam-rate", type=float, default=3e-3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
