"""The vision part in training: how it starts, what it is asked, and its losses."""

import math

import torch
from torch import nn
from torch.nn import functional
from transformers import Idefics3ForConditionalGeneration

from bench.embedded_model.cells import FACTS, PATCHES_A_SIDE, UNSURE, CellCodes
from bench.embedded_model.folder import PATCH_PX, POSITIONS_A_SIDE

_EMPTY_WEIGHT = 0.3
"""Weight of cells and patches that hold nothing: they are many."""
_SCORE_SCALE = 8.0
"""How much a code fully present in a token counts as a logit."""


class PatchHeads(nn.Module):
    """Linear heads that read the facts of every patch; used in training only."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.head = nn.Linear(width, sum(FACTS))

    def forward(self, patches: torch.Tensor) -> list[torch.Tensor]:
        """Return the logits of each fact for *patches* ``[B, 81, width]``."""
        return list(torch.split(self.head(patches), FACTS, dim=-1))


def encode_patches(model: Idefics3ForConditionalGeneration, pixels: torch.Tensor) -> torch.Tensor:
    """Return the features ``[B, 81, width]`` of normalized *pixels*, as the model computes them."""
    vision = model.model.vision_model
    patches = vision.embeddings.patch_embedding(pixels).flatten(2).transpose(1, 2)
    hidden = patches + vision.embeddings.position_embedding(position_ids())
    for layer in vision.encoder.layers:
        hidden = layer(hidden, attention_mask=None)
    return vision.post_layernorm(hidden)


@torch.no_grad()
def start_vision(model: Idefics3ForConditionalGeneration, pixels: torch.Tensor) -> None:
    """
    Whiten the patch embedding on *pixels* and write a sine and cosine code into the positions.

    Without whitening almost all of a patch's variance is its mean brightness, and shapes are
    hardly learnt.
    """
    embeddings = model.model.vision_model.embeddings
    patches = (
        functional.unfold(pixels, PATCH_PX, stride=PATCH_PX).transpose(1, 2).flatten(0, 1).double()
    )
    mean = patches.mean(0)
    values, vectors = torch.linalg.eigh((patches - mean).T @ (patches - mean) / len(patches))
    width = embeddings.patch_embedding.weight.shape[0]
    top_values, top_vectors = values[-width:], vectors[:, -width:]
    rows = (top_vectors / (top_values + 3e-3).sqrt()).T
    embeddings.patch_embedding.weight.copy_(rows.reshape(embeddings.patch_embedding.weight.shape))
    embeddings.patch_embedding.bias.copy_(-rows @ mean)
    embeddings.position_embedding.weight[position_ids()] = 0.7 * sine_code(PATCHES_A_SIDE, width)


def position_ids() -> torch.Tensor:
    """Return the positions of the patches, row by row, in the table that has one more a side."""
    side = torch.arange(PATCHES_A_SIDE)
    return (side[:, None] * POSITIONS_A_SIDE + side).flatten()


def sine_code(side: int, width: int) -> torch.Tensor:
    """Return a code ``[side * side, width]`` of places in a square, near for near places."""
    frequencies = math.pi / side * torch.logspace(0.0, math.log10(side), width // 4)
    angles = torch.arange(side)[:, None] * frequencies
    line = torch.cat([angles.sin(), angles.cos()], dim=1)
    rows, columns = line.repeat_interleave(side, 0), line.repeat(side, 1)
    return torch.cat([rows, columns], dim=1)


def patch_loss(logits: list[torch.Tensor], facts: torch.Tensor) -> torch.Tensor:
    """Return the loss of the patch heads against *facts* ``[B, 81, 4]``."""
    weight = torch.where(facts[..., 0] == 0, _EMPTY_WEIGHT, 1.0)
    return _weighted_loss(logits, facts, weight)


def token_loss(tokens: torch.Tensor, facts: torch.Tensor, codes: CellCodes) -> torch.Tensor:
    """Return how far *tokens* ``[B, 9, width]`` are from the codes of *facts* ``[B, 9, 4]``."""
    weight = torch.where(facts[..., 0] == 0, _EMPTY_WEIGHT, 1.0) * (facts[..., 0] != UNSURE)
    facts = facts.clamp(min=0)
    distance = (tokens - codes.encode(facts)).square().sum(-1)
    scores = [_SCORE_SCALE * score for score in codes.scores(tokens)]
    return (distance * weight).sum() / weight.sum() + _weighted_loss(scores, facts, weight)


def token_accuracy(tokens: torch.Tensor, facts: torch.Tensor, codes: CellCodes) -> dict[str, float]:
    """Return how often facts are right: each where there is something, and whole pictures."""
    found = torch.stack([score.argmax(-1) for score in codes.scores(tokens)], dim=-1)
    right = found == facts
    filled = facts[..., 0] > 1
    figures = {
        f"cell {name}": right[..., column][filled].float().mean().item()
        for column, name in enumerate(("kind", "colour", "size", "background"))
    }
    is_sure = facts[:, 0, 0] != UNSURE
    figures["all cells"] = right[is_sure][..., :3].flatten(1).all(1).float().mean().item()
    return figures


def _weighted_loss(
    logits: list[torch.Tensor], facts: torch.Tensor, weight: torch.Tensor
) -> torch.Tensor:
    losses = [
        functional.cross_entropy(
            logit.flatten(0, -2), facts[..., column].flatten(), reduction="none"
        )
        for column, logit in enumerate(logits)
    ]
    return sum((loss * weight.flatten()).sum() for loss in losses) / weight.sum()
