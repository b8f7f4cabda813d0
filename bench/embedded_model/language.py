"""The language part in training: answers to lessons, their loss, and how many are right."""

from collections import defaultdict

import torch
from torch.nn import functional
from transformers import Idefics3ForConditionalGeneration

from bench.embedded_model.lessons import LessonBatch


def answer_logits(
    model: Idefics3ForConditionalGeneration, batch: LessonBatch, image_tokens: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """
    Return logits, right tokens and numbers of answers at every learnt token of *batch*.

    Args:
        model: The model, whose language part is run.
        batch: The lessons.
        image_tokens: What the pictures put in place of their tokens, ``[pictures, 9, width]``.
    """
    embeds = model.model.text_model.embed_tokens(batch.tokens)
    is_image = (batch.tokens == model.config.image_token_id).unsqueeze(-1)
    embeds = embeds.masked_scatter(is_image, image_tokens.reshape(-1, embeds.shape[-1]))
    hidden = model.model.text_model(
        inputs_embeds=embeds, attention_mask=batch.mask, position_ids=batch.places, use_cache=False
    ).last_hidden_state
    answers = batch.answers[:, 1:]
    is_learnt = answers >= 0
    logits = model.lm_head(hidden[:, :-1][is_learnt])
    return logits, batch.tokens[:, 1:][is_learnt], answers[is_learnt]


def answer_loss(
    model: Idefics3ForConditionalGeneration, batch: LessonBatch, image_tokens: torch.Tensor
) -> torch.Tensor:
    """
    Return the mean loss of the answers' tokens.

    An answer weighs as the root of its length: captions are long and soon learnt, the one word
    that says where something is takes long.
    """
    logits, tokens, answers = answer_logits(model, batch, image_tokens)
    lengths = torch.bincount(answers, minlength=len(batch.topics))
    weight = lengths[answers].float().rsqrt()
    losses = functional.cross_entropy(logits, tokens, reduction="none")
    return (losses * weight).sum() / weight.sum()


@torch.no_grad()
def answer_accuracy(
    model: Idefics3ForConditionalGeneration, batch: LessonBatch, image_tokens: torch.Tensor
) -> dict[str, float]:
    """
    Return the share of exact answers of each topic, captions by kind of scene.

    An answer whose every token is the likeliest after the right tokens before it is exactly what
    greedy decoding says.
    """
    logits, tokens, answers = answer_logits(model, batch, image_tokens)
    is_right = torch.ones(len(batch.topics), dtype=torch.long)
    is_right.scatter_reduce_(0, answers, (logits.argmax(-1) == tokens).long(), reduce="amin")
    found: dict[str, list[int]] = defaultdict(list)
    for right, topic, kind in zip(is_right.tolist(), batch.topics, batch.kinds, strict=True):
        found["all"].append(right)
        found[f"{topic} {kind}" if topic == "caption" else topic].append(right)
    return {name: sum(rights) / len(rights) for name, rights in sorted(found.items())}
