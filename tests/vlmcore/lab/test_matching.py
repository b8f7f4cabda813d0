"""Tests of `vlmcore.lab.matching`."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from artifact_cases import identity, media, plan, start, target
from vlmcore.errors import ContractError, InputMismatchError
from vlmcore.lab.artifacts import RunStart
from vlmcore.lab.inputs import Input
from vlmcore.lab.loads import ClosedLoop
from vlmcore.lab.matching import WHAT, match_inputs, require_same_inputs
from vlmcore.lab.run_plans import CacheMode
from vlmcore.lab.targets import Checkpoint, CheckpointFile

BOTH = ("mine", "mine")
FULL = media(height_px=1365, width_px=2048, pixels_sha256="4" * 64)


def given(*pictures: Any, prompt: str = "1", case: str = "dog") -> list[Input]:
    """Make what a target was given for one case."""
    return [Input(target="mine", case=case, prompt_sha256=prompt * 64, media=pictures)]


def of_checkpoint(**fields: Any) -> RunStart:
    """Make the start of a run with another checkpoint."""
    checkpoint = Checkpoint(**{"model": "embedded"} | fields)
    return start(identity=identity(targets=[target(checkpoint=checkpoint)]))


def test_a_run_was_given_what_it_was_given() -> None:
    """
    Nothing differs, and nothing is unknown.
    """
    assert () == require_same_inputs(start(), start(label="again"), targets=BOTH)


def test_full_pixels_are_not_compared_with_few() -> None:
    """
    The published headline of 7.33 does; the suite differs as well, and pixels are told first.
    """
    full = start(inputs=given(FULL), suite={"name": "beach", "longest_edge": 2048})

    with pytest.raises(InputMismatchError) as error:
        require_same_inputs(full, start(), targets=BOTH)

    assert "pixels" == error.value.what
    assert str(error.value) == (
        "pixels: got 448x299 (222222222222) in case 'dog', expected that of the baseline, "
        "2048x1365 (444444444444) in case 'dog'"
    )


def test_what_is_changed_on_purpose_is_named() -> None:
    """
    And nothing else may change with it.
    """
    full = start(inputs=given(FULL))

    assert () == require_same_inputs(full, start(), targets=BOTH, allowing=["pixels"])
    with pytest.raises(InputMismatchError, match="cache: got unique, expected that of the base"):
        require_same_inputs(
            attrs.evolve(full, plan=plan(cache=CacheMode.WARM_PREFIX)),
            start(),
            targets=BOTH,
            allowing=["pixels"],
        )


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (start(inputs=given(media(), case="cat")), "cases"),
        (start(inputs=given(media(pixels_sha256="9" * 64))), "pixels"),
        (start(inputs=given(media(), media())), "pixels"),
        (start(inputs=given(media(frames=8))), "pixels"),
        (start(inputs=given(media(), prompt="7")), "prompts"),
        (start(suite={"name": "other"}), "suite"),
        (
            of_checkpoint(
                files=[CheckpointFile(name="model.safetensors", size_bytes=5, sha256="6" * 64)]
            ),
            "checkpoint",
        ),
        (start(identity=identity(targets=[target(precision="bfloat16")])), "precision"),
        (start(plan=plan(generation={"max_new_tokens": 40, "temperature": 0.0, "seed": 0})), "gen"),
        (start(plan=plan(cache=CacheMode.COLD)), "cache"),
        (start(plan=plan(streamed=False)), "streamed"),
        (start(plan=plan(load=ClosedLoop(clients=8))), "load"),
    ],
)
def test_each_thing_that_differs_is_told(other: RunStart, what: str) -> None:
    """
    Either way round.
    """
    for one, another in ((start(), other), (other, start())):
        with pytest.raises(InputMismatchError, match=f"^{what}"):
            require_same_inputs(one, another, targets=BOTH)
    assert 1 == len(match_inputs(start(), other, targets=BOTH).differences)


def test_what_differs_in_a_long_list_is_told_alone() -> None:
    """
    An error is read by a person.
    """
    asked = {f"option {i}": i for i in range(500)}
    one = start(plan=plan(generation=asked))
    other = start(plan=plan(generation=asked | {"option 7": "x" * 1000, "seed": 3}))

    (found,) = match_inputs(one, other, targets=BOTH).differences
    assert "option 7: 7" == found.expected
    assert len(found.got) < 100
    longer = start(plan=plan(generation=asked | {"option 7": "x" * 1001, "seed": 3}))
    (found,) = match_inputs(other, longer, targets=BOTH).differences
    assert found.got.endswith(", but other beyond")
    (found,) = match_inputs(start(), start(inputs=given(case="cat")), targets=BOTH).differences
    assert ("no cat", "cat: 'given'") == (found.expected, found.got)


def test_options_and_labels_may_differ() -> None:
    """
    They are what is compared.
    """
    faster = target(options={"attention": "flash"})
    other = start(label="flash", identity=identity(targets=[faster]))

    assert () == match_inputs(start(), other, targets=BOTH).differences


@pytest.mark.parametrize("fields", [{}, {"revision": "a" * 40}])
def test_a_checkpoint_that_nobody_told_is_neither_the_same_nor_another(
    fields: dict[str, Any],
) -> None:
    """
    The name alone says nothing: a hub id moves.
    """
    assert ("checkpoint",) == require_same_inputs(start(), of_checkpoint(**fields), targets=BOTH)


def test_revisions_are_compared_where_files_are_not_known() -> None:
    """
    As those of servers.
    """
    one, other = (of_checkpoint(revision=digit * 40) for digit in "ab")

    assert () == require_same_inputs(one, one, targets=BOTH)
    with pytest.raises(InputMismatchError, match="checkpoint: got embedded bbb"):
        require_same_inputs(one, other, targets=BOTH)


def test_a_precision_that_nobody_told_is_unknown() -> None:
    """
    On whichever side.
    """
    silent = start(identity=identity(targets=[target(precision=None)]))

    assert ("precision",) == require_same_inputs(silent, start(), targets=BOTH)
    assert ("precision",) == require_same_inputs(start(), silent, targets=BOTH)


def test_two_targets_of_one_run_are_compared() -> None:
    """
    Which is how they should be measured.
    """
    pair = [target(), target(name="other")]
    inputs = [
        Input(target=name, case="dog", prompt_sha256="1" * 64, media=[picture])
        for name, picture in (("mine", FULL), ("other", media()))
    ]
    both = start(identity=identity(targets=pair), inputs=inputs)

    with pytest.raises(InputMismatchError, match="pixels"):
        require_same_inputs(both, both, targets=("mine", "other"))
    with pytest.raises(ContractError, match="targets: got 'third', expected one of mine, other"):
        match_inputs(both, both, targets=("mine", "third"))


@pytest.mark.parametrize(
    ("allowing", "message"),
    [
        ("pixels", "allowing: got str, expected tuple"),
        (["speed"], "allowing: got 'speed', expected some of cases, pixels"),
        ([["pixels"]], r"allowing: got \['pixels'\], expected some of"),
    ],
)
def test_what_is_allowed_is_something_that_is_compared(allowing: Any, message: str) -> None:
    """
    A word that is misspelt allows nothing.
    """
    with pytest.raises(ContractError, match=message):
        require_same_inputs(start(), start(), targets=BOTH, allowing=allowing)
    assert len(WHAT) == len(set(WHAT))
    with pytest.raises(ContractError, match="before: got str, expected RunStart"):
        match_inputs("a", start(), targets=BOTH)  # type: ignore[arg-type]
