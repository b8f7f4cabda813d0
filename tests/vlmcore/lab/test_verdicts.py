"""Tests of `vlmcore.lab.verdicts`: a speed-up counts only where the output stayed good."""

from __future__ import annotations

import math
import random
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sample_cases import sample
from vlmcore.errors import ContractError
from vlmcore.lab.events import Failure, FailureKind, Phase
from vlmcore.lab.gates import Exactness, Graded, Quality
from vlmcore.lab.ratios import Ratio, Resampling
from vlmcore.lab.verdicts import Judgement, Rules, Speed, Verdict, judge, speed_of

QUICK = Resampling(resamples=300)
SPEED = Rules(metrics=("ttft/1", "tpot/1"), resampling=QUICK)


def side(
    target: str,
    *,
    factor: float = 1.0,
    blocks: int = 10,
    seed: int = 0,
    noise: float = 0.01,
    quality: float | None = 1.0,
    cases: tuple[str, ...] = ("dog",),
    text: str = "a dog",
    tokens: int = 31,
    **fields: Any,
) -> list[Graded]:
    """Simulate the answers of one of two targets that take turns, on a machine that drifts."""
    drawn = random.Random(f"{target} {seed}")
    made = []
    for block in range(blocks):
        for leg in (0, 3) if (target == "A") == (block % 2 == 0) else (1, 2):
            for case in cases:
                slower = factor * (1 + 0.05 * (4 * block + leg) / (4 * blocks))
                first = 40 * slower * math.exp(drawn.gauss(0, noise))
                last = first + 5 * (tokens - 1) * slower * math.exp(drawn.gauss(0, noise))
                told = {"case": case, "target": target, "block": block, "leg": leg, "text": text}
                one = sample(first, last, tokens=tokens, **told | fields)
                made.append(Graded(sample=one, quality=quality))
    return made


def judged(after: list[Graded], rules: Rules = SPEED, **before: Any) -> Judgement:
    """Judge against a baseline of the same cases."""
    cases = {each.sample.case: 0.1 for each in after}
    return judge(side("A", cases=tuple(cases), **before), after, margins=cases, rules=rules)


def test_faster_and_as_good_is_a_win() -> None:
    """
    By more than 2 %, whatever of the interval is taken.
    """
    made = judged(side("B", factor=0.9))

    assert Verdict.WIN is made.verdict
    assert [Speed.FASTER] * 2 == [each.speed for each in made.speeds]
    assert made.reasons[0].startswith("ttft/1: faster, time x 0.899 (0.")
    assert not made.is_regression


def test_slower_is_a_regression() -> None:
    """
    However good the answers are.
    """
    made = judged(side("B", factor=1.1), quality=0.5)

    assert Verdict.REGRESSION is made.verdict
    assert made.is_regression


def test_faster_at_one_and_slower_at_another_is_a_regression() -> None:
    """
    Flash Attention 2 with a dynamic cache was.
    """
    rules = Rules(metrics=("ttft/1", "tpot/1"), resampling=QUICK)
    after = [
        attrs.evolve(each, sample=attrs.evolve(each.sample, chunks=each.sample.chunks[:1] * 2))
        for each in side("B", factor=1.2)
    ]
    made = judge(side("A"), after, margins={"dog": 0.0}, rules=attrs.evolve(rules))

    assert Verdict.REGRESSION is made.verdict


@pytest.mark.parametrize("factor", [1.0, 0.99, 1.01])
def test_a_difference_below_the_margin_is_inconclusive(factor: float) -> None:
    """
    Nobody should change a runtime for it.
    """
    made = judged(side("B", factor=factor))

    assert Verdict.INCONCLUSIVE is made.verdict


def test_a_faster_target_whose_answers_got_worse_is_invalid_and_a_regression() -> None:
    """
    Ten times as fast, two tokens of a code fence: never promoted without output evidence.
    """
    made = judged(side("B", factor=0.1, quality=0.0, text="```", tokens=2))

    assert Verdict.INVALID_OUTPUT is made.verdict
    assert made.is_regression
    assert "case 'dog': quality 0 after 1, expected at least 0.9" == made.reasons[0]


def test_one_broken_case_of_fifty_is_enough() -> None:
    """
    Its name is the first reason.
    """
    cases = tuple(f"case {i}" for i in range(50))
    after = [
        attrs.evolve(each, quality=0.0) if each.sample.case == "case 7" else each
        for each in side("B", factor=0.5, cases=cases, blocks=6)
    ]
    made = judged(after, blocks=6)

    assert Verdict.INVALID_OUTPUT is made.verdict
    assert made.reasons[0].startswith("case 'case 7': quality 0 after 1")


def test_another_answer_where_it_must_be_exact_is_invalid() -> None:
    """
    Although its quality is the same: two findings, never one.
    """
    rules = attrs.evolve(SPEED, exact=("dog",))
    made = judged(side("B", factor=0.5, text="a hound"), rules)

    assert Verdict.INVALID_OUTPUT is made.verdict
    assert "case 'dog': one answer before, and another one after" == made.reasons[0]
    assert Quality.KEPT is made.quality[0].quality
    assert Verdict.WIN is judged(side("B", factor=0.5, text="a hound")).verdict


def test_a_target_that_does_not_agree_with_itself_fails_no_exact_gate() -> None:
    """
    It is nondeterministic, and nothing is known.
    """
    after = side("B", factor=0.5)
    after[3] = attrs.evolve(after[3], sample=attrs.evolve(after[3].sample, text="a hound"))
    made = judged(after, attrs.evolve(SPEED, exact=("dog",)))

    assert Exactness.NONDETERMINISTIC is made.exactness[0].exactness
    assert Verdict.INCONCLUSIVE is made.verdict
    assert "case 'dog': 2 different answers in 20 after" == made.reasons[0]


def test_answers_that_nobody_judged_win_nothing() -> None:
    """
    Unless they are the same, to the byte.
    """
    after = side("B", factor=0.5, quality=None)
    made = judged(after, quality=None)

    assert Verdict.INCONCLUSIVE is made.verdict
    assert "case 'dog': answers that nobody judged before" == made.reasons[0]
    assert Verdict.WIN is judged(after, attrs.evolve(SPEED, exact=("dog",)), quality=None).verdict


def test_slower_answers_that_nobody_judged_are_a_regression() -> None:
    """
    No quality would make up for it.
    """
    assert Verdict.REGRESSION is judged(side("B", factor=1.5, quality=None), quality=None).verdict


def test_shorter_answers_do_not_win_end_to_end() -> None:
    """
    40 tokens for 31: the whole takes longer because it says more. What one token takes is compared.
    """
    rules = Rules(metrics=("e2e/1", "ttft/1", "tpot/1"), resampling=QUICK)
    made = judged(side("B", factor=0.9, text="a big dog", tokens=31), rules, tokens=40)

    whole = made.speeds[0]
    assert Speed.NOT_COMPARABLE is whole.speed
    assert "answers differ in case 'dog': 40 tokens before, 31 tokens after" == whole.reason
    assert whole.comparison.ratio.estimate is None
    assert [Speed.FASTER] * 2 == [each.speed for each in made.speeds[1:]]
    assert Verdict.WIN is made.verdict


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ([None, None], "an unknown number of tokens"),
        ([31, None], "an unknown number of tokens"),
        ([31, 40], "31 to 40 tokens"),
        ([31, 31], "31 tokens"),
    ],
)
def test_a_number_of_tokens_is_told_only_if_all_of_it_is_known(
    told: list[int | None], said: str
) -> None:
    """
    A part of them could be any.
    """
    rules = Rules(metrics=("e2e/1",), resampling=QUICK)
    after = [
        Graded(sample=sample(40, 90, tokens=each, target="B", leg=i, text=f"answer {i}"))
        for i, each in enumerate(told)
    ]
    made = judge(side("A"), after, margins={"dog": 1.0}, rules=rules)

    assert f"answers differ in case 'dog': 31 tokens before, {said} after" == made.speeds[0].reason


@pytest.mark.parametrize(
    ("cases", "more"),
    [(("cat",), ""), (("cat", "dog"), ", and in 1 more"), ("abc", ", and in 2 more")],
)
def test_the_first_case_whose_answers_differ_is_named(cases: Any, more: str) -> None:
    """
    And the others are counted.
    """
    rules = Rules(metrics=("e2e/1",), resampling=QUICK)
    made = judged(side("B", cases=tuple(cases), text="other"), rules)

    said = "31 tokens before, 31 tokens after"
    assert f"answers differ in case '{cases[0]}': {said}{more}" == made.speeds[0].reason


def test_end_to_end_alone_of_other_answers_is_inconclusive() -> None:
    """
    Half of the time for half of the words is no win.
    """
    rules = Rules(metrics=("e2e/1",), resampling=QUICK)
    made = judged(side("B", factor=0.5, text="dog", tokens=2), rules)

    assert Verdict.INCONCLUSIVE is made.verdict
    assert Speed.FASTER is judged(side("B", factor=0.5), rules).speeds[0].speed


def test_end_to_end_is_told_for_the_cases_whose_answers_are_the_same() -> None:
    """
    Case by case, although not for the whole.
    """
    rules = Rules(metrics=("e2e/1",), resampling=QUICK)
    after = [
        attrs.evolve(each, sample=attrs.evolve(each.sample, text="other"))
        if each.sample.case == "cat"
        else each
        for each in side("B", factor=0.5, cases=("cat", "dog"))
    ]
    made = judged(after, rules).speeds[0]

    assert Speed.NOT_COMPARABLE is made.speed
    assert ["dog"] == list(made.comparison.cases)


def test_three_blocks_are_inconclusive_and_show_their_ranges() -> None:
    """
    Three cold starts against three, "26.3 % faster" and a "p95".
    """
    made = judged(
        side("B", factor=0.737, blocks=3, phase=Phase.COLD_START), blocks=3, phase=Phase.COLD_START
    )

    assert Verdict.INCONCLUSIVE is made.verdict
    assert made.reasons[0].startswith("ttft/1: inconclusive (n: 3 blocks, and an interval needs 6)")
    seen = made.speeds[0].before["dog"]
    assert 6 == seen.count
    assert seen.smallest is not None
    assert seen.largest is not None
    assert seen.smallest < seen.largest
    assert [None] * 4 == [each.value for each in seen.quantiles[1:]]


def test_two_runs_of_two_days_are_inconclusive() -> None:
    """
    Whatever the figures: nobody knows what the days did.
    """
    one_day = [
        attrs.evolve(each, sample=attrs.evolve(each.sample, leg=0)) for each in side("A", seed=1)
    ]
    another = [
        attrs.evolve(each, sample=attrs.evolve(each.sample, leg=0))
        for each in side("B", factor=0.5)
    ]
    made = judge(one_day, another, margins={"dog": 0.0}, rules=SPEED)

    assert Verdict.INCONCLUSIVE is made.verdict
    assert "ttft/1: inconclusive: no case has readings of both in one block" == made.reasons[0]
    assert 20 == made.speeds[0].before["dog"].count


def test_a_figure_that_nobody_has_says_why() -> None:
    """
    A server that tells no usage has no time per token.
    """
    made = judged(side("B", factor=0.9, usage=None), usage=None)

    assert "tpot/1: inconclusive: nobody told how many tokens were generated" == made.reasons[1]
    assert Verdict.WIN is made.verdict


def test_the_baseline_is_compared_with_itself_beside() -> None:
    """
    What differs there is the machine.
    """
    control = judged(side("B", factor=0.5)).speeds[0].control

    assert 1 == pytest.approx(control.ratio.estimate, abs=0.03)
    assert 10 == control.ratio.blocks


def test_a_target_that_drops_requests_is_no_win() -> None:
    """
    The requests that failed are not in its times, but in its quality.
    """
    after = side("B", factor=0.5)
    for i in range(0, len(after), 3):
        broken = attrs.evolve(after[i].sample, failure=Failure(kind=FailureKind.TIMEOUT))
        after[i] = Graded(sample=broken)
    made = judged(after)

    assert Verdict.INVALID_OUTPUT is made.verdict
    assert made.reasons[0].startswith("case 'dog': quality 0.65 after 1")


def test_a_case_that_was_never_asked_again_is_not_known_to_be_good() -> None:
    """
    A run that was stopped half way.
    """
    made = judge(
        side("A", cases=("cat", "dog")),
        side("B", factor=0.5),
        margins={"cat": 0.1, "dog": 0.1},
        rules=SPEED,
    )

    assert Verdict.INCONCLUSIVE is made.verdict
    assert "case 'cat': no answers after" == made.reasons[0]


@pytest.mark.parametrize(
    ("low", "high", "speed"),
    [
        (0.90, 0.97, Speed.FASTER),
        (0.90, 0.98, Speed.INCONCLUSIVE),  # below 1 - margin, not at it
        (0.90, 0.99, Speed.INCONCLUSIVE),
        (0.99, 1.10, Speed.INCONCLUSIVE),
        (1.02, 1.10, Speed.INCONCLUSIVE),
        (1.021, 1.10, Speed.SLOWER),
        (0.50, 2.00, Speed.INCONCLUSIVE),
        (None, None, Speed.INCONCLUSIVE),
    ],
)
def test_the_whole_interval_decides(low: float | None, high: float | None, speed: Speed) -> None:
    """
    Not the estimate.
    """
    assert speed is speed_of(Ratio(estimate=0.95, low=low, high=high, blocks=9))


def test_of_200_runs_of_a_target_against_itself_almost_none_wins_or_loses() -> None:
    """
    While the machine gets 5 % slower, with noise of 4 %; 7 % would be many.
    """
    rules = Rules(metrics=("e2e/1",), resampling=Resampling(resamples=200))
    found = [
        judge(
            side("A", seed=seed, noise=0.04),
            side("B", seed=seed, noise=0.04),
            margins={"dog": 0.0},
            rules=rules,
        ).verdict
        for seed in range(200)
    ]

    assert sum(verdict is not Verdict.INCONCLUSIVE for verdict in found) / 200 <= 0.07


@settings(max_examples=25)
@given(
    factor=st.floats(0.5, 2),
    quality=st.sampled_from([None, 0.0, 0.5, 1.0]),
    text=st.sampled_from(["a dog", "other"]),
    exact=st.sampled_from([(), ("dog",)]),
    blocks=st.integers(1, 8),
)
def test_a_win_is_never_without_evidence_of_its_output(
    factor: float, quality: float | None, text: str, exact: tuple[str, ...], blocks: int
) -> None:
    """
    And every verdict has a reason.
    """
    rules = attrs.evolve(SPEED, exact=exact)
    made = judged(
        side("B", factor=factor, quality=quality, text=text, blocks=blocks), rules, blocks=blocks
    )

    assert made.reasons
    if made.verdict is Verdict.WIN:
        assert factor < 0.98
        assert blocks >= 6
        assert quality == 1.0 or (exact and text == "a dog")
        assert not (exact and text == "other")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"metrics": "ttft/1"}, "metrics: got str, expected tuple"),
        ({"metrics": []}, r"metrics: got \(\), expected each once, and one"),
        ({"metrics": ["ttft/1", "ttft/1"]}, "metrics: got .*, expected each once"),
        ({"metrics": ["speed"]}, "metric: got 'speed'"),
        ({"exact": "dog"}, "exact: got str, expected tuple"),
        ({"exact": [["dog"]]}, r"exact\[0\]: got list, expected text"),
        ({"margin": 2}, "margin: got 2, expected a number from 0.0 to 0.5"),
        ({"margin": math.nan}, "margin: got nan"),
        ({"resampling": 4000}, "resampling: got int, expected Resampling"),
    ],
)
def test_rules_that_decide_nothing_are_refused(fields: dict[str, Any], message: str) -> None:
    """
    Before anything is measured.
    """
    with pytest.raises(ContractError, match=message):
        Rules(**fields)


def test_rules_and_answers_are_of_the_suite() -> None:
    """
    A case with a name that is misspelt would be exact by not being there.
    """
    with pytest.raises(ContractError, match=r"rules.exact: got \['dgo'\], expected cases with a"):
        judge([], [], margins={"dog": 0.1}, rules=Rules(exact=["dgo"]))
    with pytest.raises(ContractError, match="got a warm-up"):
        judge([Graded(sample=sample(5, phase=Phase.WARM_UP))], [], margins={"dog": 0.1})
    with pytest.raises(ContractError, match=r"after\[0\]: got Sample, expected Graded"):
        judge([], [sample(5)], margins={"dog": 0.1})  # type: ignore[list-item]
    with pytest.raises(ContractError, match="margins: got list, expected Mapping"):
        judge([], [], margins=["dog"])  # type: ignore[arg-type]
    assert Verdict.INCONCLUSIVE is judge([], [], margins={"dog": 0.1}).verdict
