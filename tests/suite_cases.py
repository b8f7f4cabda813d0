"""Suites of the speed lab for its tests: one of every kind, and any that there may be."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from vlmcore.lab.scoring.concepts import ConceptEvaluator
from vlmcore.lab.scoring.detection import DetectionEvaluator
from vlmcore.lab.scoring.exact import ExactEvaluator
from vlmcore.lab.scoring.json_answer import JsonEvaluator
from vlmcore.lab.scoring.keywords import KeywordEvaluator
from vlmcore.lab.scoring.normalising import Level
from vlmcore.lab.scoring.number import NumberEvaluator, NumberPolicy
from vlmcore.lab.scoring.phrases import words_of
from vlmcore.lab.suites import Case, Suite
from vlmcore.vision.detections import Detection, Detections
from vlmcore.vision.places import Box

__all__ = ["SCENE", "case", "evaluators", "suites"]

SCENE = Detections(
    height_px=40, width_px=60, items=[Detection(place=Box.of((1, 2, 30, 20)), label="dog")]
)
_PHRASES = st.lists(
    st.text("abcé 犬-3.5", min_size=1, max_size=6).filter(words_of),
    min_size=1,
    max_size=4,
    unique_by=words_of,
)
_TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(str.strip)
_NAMES = st.text("abc é\"'\\#=", min_size=1, max_size=8).filter(str.strip)
_VALUES = st.recursive(
    st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=5,
)


def case(**given: Any) -> Case:
    """Make a case of which only what matters is said."""
    usual: dict[str, Any] = {
        "name": "dice",
        "image": "dice.png",
        "prompt": "How many dice are there?",
        "evaluator": NumberEvaluator(expected=3),
    }
    return Case(**usual | given)


def evaluators() -> st.SearchStrategy[Any]:
    """Make any evaluator that a document knows and that TOML can hold."""
    whole = {"must_be_whole": st.booleans()}
    words = {"plurals": st.booleans(), "most_words": st.integers(1, 100_000), **whole}
    fields = st.dictionaries(st.text("abc é.", min_size=1, max_size=5), _VALUES, min_size=1)
    return st.one_of(
        st.builds(KeywordEvaluator, expected=_PHRASES, **words),
        st.builds(
            ConceptEvaluator,
            expected=_PHRASES.map(lambda names: [[name] for name in names]),
            negation_window=st.integers(0, 32),
            **words,
        ),
        st.builds(
            ExactEvaluator,
            expected=_TEXTS.map(lambda text: f"a{text}"),
            level=st.sampled_from(Level),
            **whole,
        ),
        st.builds(
            NumberEvaluator,
            expected=st.integers(-1000, 1000) | st.floats(-1e9, 1e9),
            policy=st.sampled_from(NumberPolicy),
            tolerance=st.floats(0, 10),
            spelled=st.booleans(),
            **whole,
        ),
        st.builds(
            JsonEvaluator,
            expected=fields,
            schema=st.none() | st.just({"type": "object"}),
            level=st.sampled_from(Level),
            **whole,
        ),
        st.builds(
            DetectionEvaluator,
            expected=st.just(SCENE),
            dialect=st.sampled_from(["gemini", "pixels"]),
            min_iou=st.floats(0.1, 1),
            seen_width_px=st.integers(0, 90),
            **whole,
        ),
    )


@st.composite
def suites(draw: st.DrawFn) -> Suite:
    """Make any suite."""
    names = draw(st.lists(_NAMES, min_size=1, max_size=4, unique=True))
    optional_count = st.none() | st.integers(1, 2000)
    cases = []
    for name in names:
        kind = draw(st.sampled_from(["image", "video"]))
        media: dict[str, Any] = {kind: f"{draw(st.sampled_from(['a', 'b/c é']))}.bin"}
        if kind == "video":
            media["frames"] = draw(st.integers(1, 64))
        cases.append(
            case(
                **media | {"image": media.get("image")},
                name=name,
                prompt=draw(_TEXTS),
                evaluator=draw(evaluators()),
                longest_edge_px=draw(optional_count),
                max_new_tokens=draw(optional_count),
                system=draw(st.just("") | _TEXTS),
                margin=draw(st.floats(0, 1)),
            )
        )
    return Suite(name=draw(_NAMES), cases=cases, notes=draw(st.just("") | _TEXTS))
