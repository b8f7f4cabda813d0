"""
Part 1: train the vision part alone to say what every cell holds.

Run: ``python -m bench.embedded_model.train_vision --minutes 30 --folder RUN_FOLDER``
"""

import argparse
import pathlib

import torch

from bench.embedded_model.cells import CellCodes
from bench.embedded_model.folder import WIDTH, build_config, build_model, build_tokenizer
from bench.embedded_model.optimizers import build_optimizers, set_rates
from bench.embedded_model.pictures import Pictures, normalize, picture_batch, picture_loader
from bench.embedded_model.runs import Run
from bench.embedded_model.scenes import HELD_OUT_START, sample_scene
from bench.embedded_model.team import Team
from bench.embedded_model.vision import (
    PatchHeads,
    encode_patches,
    patch_loss,
    start_vision,
    token_accuracy,
    token_loss,
)

_WHITENING_PICTURES = 1500
_CHECKED_PICTURES = 400
_CHECK_EVERY = 200


def main() -> None:
    """Train for the time given."""
    options = _parse()
    options.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(options.threads)
    team = Team.join()
    model = build_model(build_config(build_tokenizer()), seed=options.seed)
    heads = PatchHeads(model.config.vision_config.hidden_size)
    codes = CellCodes(WIDTH)
    trained = torch.nn.ModuleDict(
        {"vision": model.model.vision_model, "connector": model.model.connector, "heads": heads}
    )
    optimizers = build_optimizers(trained, muon_rate=options.muon_rate, adam_rate=options.adam_rate)
    run = Run(folder=options.folder, name="vision", budget_s=options.minutes * 60)
    if not run.resume(trained, optimizers):
        scenes = [sample_scene(seed) for seed in range(_WHITENING_PICTURES)]
        start_vision(model, normalize(picture_batch(scenes, options.font)[0]))
    checked = picture_batch(
        [sample_scene(HELD_OUT_START - 1 - seed) for seed in range(_CHECKED_PICTURES)], options.font
    )
    first_seed = _WHITENING_PICTURES + team.first_seed + run.step * options.batch
    pictures = picture_loader(
        Pictures(first_seed=first_seed, batch_size=options.batch, fonts=options.font),
        workers=options.workers,
    )
    for pixels, patches, cells, _ in pictures:
        features = encode_patches(model, normalize(pixels))
        seen = patch_loss(heads(features), patches)
        told = token_loss(model.model.connector(features), cells, codes)
        trained.zero_grad(set_to_none=True)
        (seen + told).backward()
        progress = team.average(list(trained.parameters()), progress=run.progress)
        if progress >= 1:
            break
        set_rates(optimizers, step=run.step, progress=progress)
        torch.nn.utils.clip_grad_norm_(trained.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
        run.step += 1
        if run.step % _CHECK_EVERY == 0 and team.is_first:
            with torch.no_grad():
                tokens = model.model.connector(encode_patches(model, normalize(checked[0])))
            run.log(seen=seen.item(), told=told.item(), **token_accuracy(tokens, checked[2], codes))
            run.save(trained, optimizers)
    if team.is_first:
        run.save(trained, optimizers)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--font", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--muon-rate", type=float, default=0.02)
    parser.add_argument("--adam-rate", type=float, default=2e-3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
