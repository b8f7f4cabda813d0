"""
Suites as JSON and TOML documents, both ways, and the digest that stands for one.

Reading is strict: a document is taken as a whole or refused with all its faults, each with its
place. What is written is read back exactly, and says every option, also the usual ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from vlmcore.contracts.faults import Faults
from vlmcore.contracts.json_text import read_json, write_json
from vlmcore.contracts.schemas import DocumentKind
from vlmcore.contracts.shapes import Field, ListOf, Number, Record, Text, Whole
from vlmcore.lab._evaluator_documents import EVALUATORS, evaluator_document, evaluator_from
from vlmcore.lab.canonical import digest_of
from vlmcore.lab.scoring.exact import ExactEvaluator
from vlmcore.lab.suites import Case, Suite
from vlmcore.limits import PromptLimits, SuiteLimits, VideoLimits

__all__ = [
    "DOCUMENTS",
    "SUITE",
    "suite_digest",
    "suite_document",
    "suite_from",
    "suite_from_json",
    "suite_from_toml",
    "suite_to_json",
    "suite_to_toml",
]

_LIMITS = SuiteLimits()
_STAND_IN = ExactEvaluator(expected="-")  # in a case whose own is refused, to find what else is
_NAME = Text(longest=_LIMITS.max_name_characters)
_PROMPT = Text(longest=_LIMITS.max_prompt_characters)
_CASE: Mapping[str, Field] = {
    "name": Field(_NAME, "Of the case; no other has it."),
    "image": Field(_NAME, "Path of the image, in the folder of the suite.", optional=True),
    "video": Field(_NAME, "Path of a video; one of the two is there.", optional=True),
    "frames": Field(
        Whole(smallest=1, largest=VideoLimits().max_frames),
        "How many frames of the video are shown, at even steps of time; there if it is.",
        optional=True,
    ),
    "longest_edge_px": Field(
        Whole(smallest=1, largest=_LIMITS.max_edge_px),
        "Longer edges are made that short.",
        optional=True,
    ),
    "prompt": Field(_PROMPT, "What the model is asked."),
    "system": Field(_PROMPT, "The system text.", optional=True),
    "max_new_tokens": Field(
        Whole(smallest=1, largest=PromptLimits().max_new_tokens),
        "Tokens that the answer may have; as many as the run says if missing.",
        optional=True,
    ),
    "margin": Field(
        Number(largest=1.0),
        "How much lower than that of the baseline the score may be, from 0; 0 if missing.",
        optional=True,
    ),
}


@attrs.frozen
class _CaseShape:
    """A case: what is expected, and which options there are, is for its evaluator to say."""

    def faults(self, value: Any, path: str) -> Iterator[tuple[str, str]]:
        said = value.get("evaluator") if isinstance(value, dict) else None
        names = (said,) if isinstance(said, str) and said in EVALUATORS else tuple(EVALUATORS)
        yield from _case_record(*names).faults(value, path)

    def schema(self) -> dict[str, Any]:
        return {"oneOf": [_case_record(name).schema() for name in EVALUATORS]}


@attrs.frozen
class _Anything:
    """What nothing is known of."""

    def faults(self, _: Any, __: str) -> Iterator[tuple[str, str]]:
        yield from ()

    def schema(self) -> dict[str, Any]:
        return {}


_UNKNOWN = {
    "expected": Field(_Anything(), "What is expected."),
    "options": Field(_Anything(), "How the answer is scored.", optional=True),
}


def _case_record(*names: str) -> Record:
    evaluator = Field(Text(one_of=names), "How the answer is scored.")
    keys = EVALUATORS[names[0]].keys() if len(names) == 1 else _UNKNOWN
    return Record(fields={**_CASE, "evaluator": evaluator, **keys})


SUITE = DocumentKind(
    name="lab-suite",
    title="What the speed lab measures: images or videos, prompts, and what is expected.",
    keys={
        "name": Field(_NAME, "Of the suite."),
        "notes": Field(Text(longest=_LIMITS.max_notes_characters), "For people.", optional=True),
        "cases": Field(
            ListOf(item=_CaseShape(), fewest=1, most=_LIMITS.max_cases),
            "What is asked about what, and how the answers are scored.",
        ),
    },
)

#: The documents of suites by their names.
DOCUMENTS: Mapping[str, DocumentKind] = {SUITE.name: SUITE}


def suite_from_json(text: str | bytes, *, limits: SuiteLimits | None = None) -> Suite:
    """
    Read a suite in JSON.

    Raises:
        DocumentError: If the document has faults; all of them are listed.
        ContractError: If *text* is not JSON.
        LimitExceededError: If it is larger than *limits* allow.
        MissingDependencyError: If a case has a JSON Schema, and jsonschema is not installed.
    """
    return suite_from(read_json(text, limits=(limits or _LIMITS).of_a_document))


def suite_to_json(suite: Suite) -> str:
    """Write a suite in JSON; errors are those of `suite_document`."""
    return write_json(suite_document(suite))


def suite_from_toml(text: str | bytes, *, limits: SuiteLimits | None = None) -> Suite:
    """
    Read a suite in TOML.

    Raises:
        DocumentError: If the document has faults; all of them are listed.
        ContractError: If *text* is not TOML.
        LimitExceededError: If it is larger than *limits* allow.
        MissingDependencyError: As of `suite_from_json`; or if Python is older than 3.11, and tomli
            is not installed.

    Example:
        >>> suite = suite_from_toml('''
        ... name = "dice"
        ... [[cases]]
        ... name = "two"
        ... image = "two.png"
        ... prompt = "How many dice are there?"
        ... evaluator = "number"
        ... expected = 2
        ... options = { policy = "final" }
        ... ''')
        >>> suite.cases[0].evaluator.score("I see 1, 2: 2 dice.").value
        1.0
    """
    from vlmcore.lab import _toml  # noqa: PLC0415 - the door

    return suite_from(_toml.read_toml(text, limits or _LIMITS))


def suite_to_toml(suite: Suite) -> str:
    """
    Write a suite in TOML.

    Raises:
        ContractError: As of `suite_document`; or if TOML does not know something that is expected,
            as null in JSON.
    """
    from vlmcore.lab import _toml  # noqa: PLC0415 - the door

    return _toml.write_toml(suite_document(suite))


def suite_from(value: Any) -> Suite:
    """
    Read a suite from plain values.

    Raises:
        DocumentError: If there are faults; all of them are listed.
        MissingDependencyError: If a case has a JSON Schema, and jsonschema is not installed.
    """
    faults = Faults(SUITE.name)
    data = SUITE.read(value, faults)
    cases = []
    for path, entry in _sound_cases(value):
        evaluator = evaluator_from(entry, path, faults)
        keys = {key: entry[key] for key in _CASE if key in entry}
        with faults.at(path, **{key: f"{path}.{key}" for key in keys}):
            cases.append(Case(evaluator=evaluator or _STAND_IN, **keys))
    return faults.finish(
        lambda: Suite(name=data["name"], cases=cases, notes=data.get("notes", "")),
        name="$.name",
        notes="$.notes",
        cases="$.cases",
    )


def _sound_cases(value: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the cases whose keys are right, be others wrong: something else may be, too."""
    cases = value.get("cases")
    for i, case in enumerate(cases[: _LIMITS.max_cases] if isinstance(cases, list) else ()):
        path = f"$.cases[{i}]"
        if not any(_CaseShape().faults(case, path)):
            yield path, case


def suite_document(suite: Suite) -> dict[str, Any]:
    """
    Write a suite as plain values; its folder is no part of them.

    Raises:
        ContractError: If an evaluator is of a kind that documents do not know.
    """
    notes = {"notes": suite.notes} if suite.notes else {}
    cases = [_case_document(case) for case in suite.cases]
    return {**SUITE.header(), "name": suite.name, **notes, "cases": cases}


def _case_document(case: Case) -> dict[str, Any]:
    said = {key: getattr(case, key) for key in _CASE}
    known = {key: value for key, value in said.items() if value not in (None, "")}
    return known | evaluator_document(case.evaluator)


def suite_digest(suite: Suite) -> str:
    """
    Return what stands for a suite: the SHA-256 of its document, in canonical JSON.

    Two runs are compared only if theirs is the same. It does not cover the images and videos.

    Raises:
        ContractError: If an evaluator is of a kind that documents do not know.
        MissingDependencyError: If rfc8785 is not installed.
    """
    return digest_of(suite_document(suite))
