"""Evaluators in the document of a suite: what each expects and its options, both ways."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs

from vlmcore._copying import thawed
from vlmcore.contracts.faults import Faults
from vlmcore.contracts.shapes import (
    Field,
    Flag,
    JsonObject,
    ListOf,
    Number,
    Record,
    Shape,
    Text,
    Whole,
)
from vlmcore.errors import ContractError, DocumentError
from vlmcore.lab.scoring.concepts import ConceptEvaluator
from vlmcore.lab.scoring.detection import DetectionEvaluator
from vlmcore.lab.scoring.exact import ExactEvaluator
from vlmcore.lab.scoring.json_answer import JsonEvaluator
from vlmcore.lab.scoring.keywords import KeywordEvaluator
from vlmcore.lab.scoring.normalising import Level
from vlmcore.lab.scoring.number import NumberEvaluator, NumberPolicy
from vlmcore.lab.scoring.scores import Evaluator
from vlmcore.limits import SuiteLimits, VisionLimits
from vlmcore.vision.detections import Detections
from vlmcore.vision.dialects import DIALECTS
from vlmcore.vision.documents import (
    DETECTIONS,
    detections_from_document,
    detections_to_document,
)

__all__ = ["EVALUATORS", "EvaluatorKind", "evaluator_document", "evaluator_from"]

_LIMITS = SuiteLimits()


@attrs.frozen(kw_only=True)
class EvaluatorKind:
    """
    One kind of evaluator in a document.

    Attributes:
        make: Its class.
        expected: What is under ``expected``.
        options: What is under ``options``, by the names of the fields of the class.
    """

    make: type[Any]
    expected: Field
    options: Mapping[str, Field] = attrs.field(hash=False)

    def keys(self) -> dict[str, Field]:
        """Return the keys of a case that belong to its evaluator."""
        may_be_missing = all(field.optional for field in self.options.values())
        return {
            "expected": self.expected,
            "options": Field(
                Record(fields=self.options), "How the answer is scored.", optional=may_be_missing
            ),
        }


def _option(shape: Shape, meaning: str) -> Field:
    return Field(shape, meaning, optional=True)


def _members(kind: type[enum.Enum]) -> Text:
    return Text(one_of=tuple(str(member.value) for member in kind))


_PHRASE = Text(longest=_LIMITS.max_phrase_characters)
_PHRASES = ListOf(item=_PHRASE, fewest=1, most=_LIMITS.max_phrases)
_ENUMS: Mapping[str, type[enum.Enum]] = {"level": Level, "policy": NumberPolicy}
_SEEN = Whole(smallest=0, largest=VisionLimits().max_side_px)
_WHOLE = {"must_be_whole": _option(Flag(), "Whether an answer that is cut counts nothing.")}
_LEVEL = {"level": _option(_members(Level), "How strictly texts are compared.")}
_WORDS = {
    "plurals": _option(Flag(), "Whether a phrase is also found in its regular English plural."),
    "most_words": _option(
        Whole(smallest=1, largest=_LIMITS.max_words), "A longer answer counts nothing."
    ),
}

#: What a case may say under ``evaluator``.
EVALUATORS: Mapping[str, EvaluatorKind] = {
    "keywords": EvaluatorKind(
        make=KeywordEvaluator,
        expected=Field(_PHRASES, "The keywords."),
        options=_WORDS | _WHOLE,
    ),
    "concepts": EvaluatorKind(
        make=ConceptEvaluator,
        expected=Field(
            ListOf(item=_PHRASES, fewest=1, most=_LIMITS.max_phrases),
            "The concepts, each a list of the names that it goes by.",
        ),
        options={
            "forbidden": _option(
                attrs.evolve(_PHRASES, fewest=0), "Phrases that make an answer count nothing."
            ),
            "negation_window": _option(
                Whole(smallest=0, largest=_LIMITS.max_window_words),
                "How many words before a name may deny it.",
            ),
            **_WORDS,
            **_WHOLE,
        },
    ),
    "exact": EvaluatorKind(
        make=ExactEvaluator,
        expected=Field(Text(longest=_LIMITS.max_expected_characters), "The text."),
        options=_LEVEL | _WHOLE,
    ),
    "number": EvaluatorKind(
        make=NumberEvaluator,
        expected=Field(Number(), "The number."),
        options={
            "policy": _option(_members(NumberPolicy), "Which number of the answer is meant."),
            "tolerance": _option(Number(), "How far from the number it may be, from 0."),
            "spelled": _option(Flag(), "Whether zero to twenty in words are numbers, too."),
            **_WHOLE,
        },
    ),
    "json": EvaluatorKind(
        make=JsonEvaluator,
        expected=Field(JsonObject(), "What the fields are, by key or by JSON Pointer."),
        options={
            "schema": _option(JsonObject(), "JSON Schema that the answer has to fit."),
            **_LEVEL,
            **_WHOLE,
        },
    ),
    "detection": EvaluatorKind(
        make=DetectionEvaluator,
        expected=Field(Record(fields=DETECTIONS.keys), "The boxes, in pixels of an image."),
        options={
            "dialect": Field(Text(one_of=tuple(DIALECTS)), "How the model writes boxes."),
            "min_iou": _option(
                Number(positive=True, largest=1.0), "How much two boxes have to overlap."
            ),
            "seen_height_px": _option(_SEEN, "Height of what is shown; of the image if 0."),
            "seen_width_px": _option(_SEEN, "Width of the same."),
            **_WHOLE,
        },
    ),
}


def evaluator_from(case: Mapping[str, Any], path: str, faults: Faults) -> Evaluator | None:
    """
    Make the evaluator of a case.

    Args:
        case: The case, whose keys and their types are checked.
        path: Where it stands.
        faults: Is given what is wrong.

    Returns:
        The evaluator; ``None`` if something is.
    """
    kind = EVALUATORS[case["evaluator"]]
    options = {
        key: _ENUMS[key](value) if key in _ENUMS else value
        for key, value in case.get("options", {}).items()
    }
    places = {"expected": f"{path}.expected"} | {key: f"{path}.options.{key}" for key in options}
    with faults.at(path, **places):
        expected = case["expected"]
        if kind.make is DetectionEvaluator:
            expected = _detections(expected, f"{path}.expected", faults)
        if expected is not None:
            evaluator: Evaluator = kind.make(expected=expected, **options)
            return evaluator
    return None


def _detections(value: Any, path: str, faults: Faults) -> Detections | None:
    try:
        return detections_from_document(value)
    except DocumentError as error:
        for place, problem in error.faults:
            faults.add(path + place[1:], problem)
        return None


def evaluator_document(evaluator: Evaluator) -> dict[str, Any]:
    """
    Write an evaluator: the keys ``evaluator``, ``expected`` and ``options`` of its case.

    Raises:
        ContractError: If it is of none of the kinds that documents know.
    """
    for name, kind in EVALUATORS.items():
        if type(evaluator) is kind.make:
            options = {key: _plain(getattr(evaluator, key)) for key in kind.options}
            return {
                "evaluator": name,
                "expected": _plain(getattr(evaluator, "expected", None)),
                "options": {key: value for key, value in options.items() if value is not None},
            }
    came = type(evaluator).__name__
    raise ContractError("evaluator", f"got {came}, expected one that a document knows")


def _plain(value: Any) -> Any:
    match value:
        case enum.Enum():
            return value.value
        case tuple():
            return [_plain(each) for each in value]
        case MappingProxyType():
            return thawed(value)
        case Detections():
            header = DETECTIONS.header()
            document = detections_to_document(value)
            return {key: each for key, each in document.items() if key not in header}
        case _:
            return value
