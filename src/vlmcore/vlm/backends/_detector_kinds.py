"""
The kinds of detectors: how each is told what to look for, and what its answers mean.

transformers has a way of its own for each, and changes it between releases; one of them needs
torchvision. Here a box has one score for each label, and the rest is the same for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import attrs
import torch
import transformers

from vlmcore.errors import ContractError, MissingDependencyError, UnsupportedModelError
from vlmcore.vlm.backends._detector_pixels import PixelRules, read_pixel_rules

__all__ = ["DetectorInputs", "Query", "open_detector_inputs"]

_library: Any = transformers  # its annotations are partial
_LOCAL = {"local_files_only": True, "trust_remote_code": False}


@attrs.frozen(kw_only=True, eq=False)
class Query:
    """
    Labels as a model is given them.

    Attributes:
        tensors: Arguments of the model for one image; each is repeated for every image of a batch.
        count: How many labels there are.
        tokens: Which tokens of a text are those of each label, ``[labels, tokens]``, where the
            model is given all labels in one text.
    """

    tensors: dict[str, torch.Tensor]
    count: int
    tokens: torch.Tensor | None = None

    def batch_of(self, images: int) -> dict[str, torch.Tensor]:
        """Give the arguments for *images* images."""
        return {
            name: tensor.repeat(images, *[1] * (tensor.ndim - 1))
            for name, tensor in self.tensors.items()
        }


class _Kind(Protocol):
    """One kind of detector; *is_squared* says whether it has its images made square."""

    is_squared: bool

    def query(self, tokenizer: Any, labels: Sequence[str], config: Any) -> Query:
        """Tell the model what to look for."""
        ...

    def read(self, outputs: Any, query: Query) -> tuple[torch.Tensor, torch.Tensor]:
        """Read boxes, ``[B, Q, 4]`` of centre and size, and logits, ``[B, Q, labels]``."""
        ...


class _Grounding:
    """Grounding DINO: all labels in one text, in which every token has a score."""

    is_squared = False

    def query(self, tokenizer: Any, labels: Sequence[str], config: Any) -> Query:
        text, spans = "", []
        for i, label in enumerate(labels):
            words = label.lower().strip(" .")
            if not words:
                raise ContractError(f"labels[{i}]", f"got {label!r}, expected a word")
            spans.append((len(text), len(text) + len(words)))
            text += f"{words}. "
        encoded = tokenizer(text.rstrip(), return_offsets_mapping=True, return_tensors="pt")
        offsets = encoded["offset_mapping"][0]
        _require_tokens("labels", len(offsets), config.max_text_len)
        starts, ends = offsets[:, 0], offsets[:, 1]
        tokens = torch.stack(
            [(starts < end) & (ends > start) & (ends > starts) for start, end in spans]
        )
        for i, any_token in enumerate(tokens.any(dim=1).tolist()):
            if not any_token:
                problem = f"got {labels[i]!r}, of which the model can read nothing"
                raise ContractError(f"labels[{i}]", problem)
        names = ("input_ids", "attention_mask")
        return Query(
            tensors={name: encoded[name] for name in names}, count=len(labels), tokens=tokens
        )

    def read(self, outputs: Any, query: Query) -> tuple[torch.Tensor, torch.Tensor]:
        tokens = query.tokens
        if tokens is None:
            raise TypeError("a query without the tokens of its labels")
        logits = outputs.logits[..., : tokens.shape[1]].float()
        columns = [logits[..., mask].amax(dim=-1) for mask in tokens.to(logits.device)]
        return outputs.pred_boxes, torch.stack(columns, dim=-1)


class _Owl:
    """OWLv2: a text for each label; images are made square."""

    is_squared = True

    def query(self, tokenizer: Any, labels: Sequence[str], config: Any) -> Query:
        encoded = _each(tokenizer, labels, config)
        names = ("input_ids", "attention_mask")
        return Query(tensors={name: encoded[name] for name in names}, count=len(labels))

    def read(self, outputs: Any, query: Query) -> tuple[torch.Tensor, torch.Tensor]:
        return outputs.pred_boxes, outputs.logits.float()[..., : query.count]


class _OmDet:
    """OmDet-Turbo: a text for each label, and one that says the task."""

    is_squared = False

    def query(self, tokenizer: Any, labels: Sequence[str], config: Any) -> Query:
        encoded = _each(tokenizer, labels, config)
        task = tokenizer(
            [f"Detect {', '.join(labels)}."], truncation=True, **_padded(config.text_config)
        )
        tensors = {f"classes_{name}": encoded[name] for name in ("input_ids", "attention_mask")}
        tensors |= {f"tasks_{name}": task[name] for name in ("input_ids", "attention_mask")}
        tensors["classes_structure"] = torch.tensor([len(labels)])
        return Query(tensors=tensors, count=len(labels))

    def read(self, outputs: Any, query: Query) -> tuple[torch.Tensor, torch.Tensor]:
        logits = outputs.decoder_class_logits.float()[..., : query.count]
        return outputs.decoder_coord_logits, logits


_KINDS: dict[str, _Kind] = {
    "grounding-dino": _Grounding(),
    "mm-grounding-dino": _Grounding(),
    "owlv2": _Owl(),
    "omdet-turbo": _OmDet(),
}


def _padded(text_config: Any) -> dict[str, Any]:
    length = text_config.max_position_embeddings
    return {"padding": "max_length", "max_length": length, "return_tensors": "pt"}


def _each(tokenizer: Any, labels: Sequence[str], config: Any) -> Any:
    """Tokenise a text for each label, all of one length."""
    texts = [label.strip() for label in labels]
    length = config.text_config.max_position_embeddings
    for i, ids in enumerate(tokenizer(texts)["input_ids"]):
        _require_tokens(f"labels[{i}]", len(ids), length)
    return tokenizer(texts, **_padded(config.text_config))


def _require_tokens(field: str, count: int, most: int) -> None:
    if count > most:
        problem = f"got a text of {count} tokens, and this model reads {most}: use fewer words"
        raise ContractError(field, problem)


@attrs.frozen(kw_only=True, eq=False)
class DetectorInputs:
    """
    What makes the inputs of one model, and reads its outputs.

    Attributes:
        architecture: What transformers calls its architecture.
        pixels: What it wants its images to be.
    """

    architecture: str
    pixels: PixelRules
    _tokenizer: Any
    _config: Any

    @property
    def scores_words(self) -> bool:
        """Whether every word has a score of its own, and not each label."""
        return isinstance(_KINDS[self.architecture], _Grounding)

    def query_for(self, labels: Sequence[str]) -> Query:
        """
        Tell the model what to look for.

        Raises:
            ContractError: If it cannot be told so: too many words, or a mark of its own in them.
        """
        marks = [mark for mark in self._tokenizer.all_special_tokens if len(mark) > 1]
        for i, label in enumerate(labels):
            for mark in marks:
                if mark.lower() in label.lower():
                    problem = f"got {label!r}, expected no {mark!r} in it: a mark of the model"
                    raise ContractError(f"labels[{i}]", problem)
        return _KINDS[self.architecture].query(self._tokenizer, labels, self._config)

    def read(self, outputs: Any, query: Query) -> tuple[torch.Tensor, torch.Tensor]:
        """
        Read what the model says.

        Returns:
            Boxes, ``[B, Q, 4]``: left, top, right, bottom, as parts of the frame; and the score of
            each label for each, ``[B, Q, labels]``, 0 to 1. Both float32, on the CPU.
        """
        boxes, logits = _KINDS[self.architecture].read(outputs, query)
        centres, halves = boxes.float()[..., :2], boxes.float()[..., 2:] / 2
        corners = torch.cat([centres - halves, centres + halves], dim=-1)
        return corners.cpu(), logits.sigmoid().cpu()


def open_detector_inputs(model: str, folder: Path, config: Any, _: str | None) -> DetectorInputs:
    """
    Open what makes the inputs of a detector.

    Raises:
        UnsupportedModelError: If it is of another kind, or its tokenizer cannot be opened.
        ModelError: If its files do not say how images are prepared.
        MissingDependencyError: If its backbone is one of timm, which is not installed.
    """
    kind = _KINDS.get(config.model_type)
    if kind is None:
        known = ", ".join(sorted(_KINDS))
        problem = f"is a detector of the kind {config.model_type!r}, expected one of {known}"
        raise UnsupportedModelError(model, problem)
    _require_backbone(config)
    pixels = read_pixel_rules(model, folder, is_squared=kind.is_squared)
    try:
        tokenizer = _library.AutoTokenizer.from_pretrained(folder, **_LOCAL)
    except Exception as error:
        line = str(error).strip().partition("\n")[0]
        problem = f"its tokenizer cannot be opened ({type(error).__name__}: {line})"
        raise UnsupportedModelError(model, problem) from error
    if not tokenizer.is_fast:
        raise UnsupportedModelError(model, "has no tokenizer.json, which detectors need")
    return DetectorInputs(
        architecture=config.model_type, pixels=pixels, tokenizer=tokenizer, config=config
    )


def _require_backbone(config: Any) -> None:
    if _backbone_of(config) == "timm_backbone" and not _has_timm():
        raise MissingDependencyError("timm", "detection")


def _backbone_of(config: Any) -> str:
    if getattr(config, "use_timm_backbone", False):  # as transformers 4 says it
        return "timm_backbone"
    return str(getattr(getattr(config, "backbone_config", None), "model_type", ""))


def _has_timm() -> bool:
    return bool(transformers.utils.is_timm_available())
