"""Tests of `vlmcore.safety._html`: the whole of what a notebook is given, part by part."""

from __future__ import annotations

import math

import attrs

from safety_cases import GRIPPER, JOINT, chunk, gate
from vlmcore.contracts._markup import card, details, paragraph, table, text
from vlmcore.contracts.presets import PRESETS
from vlmcore.safety import Remedy, SafetyGate

GOOD, BAD = "#1a7f37", "#d1001f"
LOOK = "color:#ffffff;border-radius:4px;padding:.1em .5em"


def badge(colour: str, words: str) -> str:
    """Say a verdict on a colour."""
    return paragraph(f'<span style="background:{colour};{LOOK}">{words}</span>')


def test_a_clean_report_is_a_verdict_and_a_line() -> None:
    """
    No table, and nothing to open.
    """
    robot = PRESETS["LeRobot SO-100 / SO-101 template"]
    came = chunk([[0.0] * 6] * 1200, *robot.actions.names)
    report = SafetyGate(embodiment=robot, execution_horizon=1100).check(
        came, last_command=[0.0] * 6
    )

    assert (
        card(
            "Safety report on <bdi>test</bdi> for <bdi>lerobot_so100_so101_template</bdi>",
            badge(GOOD, "Safe to hand on, unchanged"),
            paragraph(
                "1,100 of 1,200 steps looked at, 6 dimensions; mode report; last command known",
                quiet=True,
            ),
            "",
        )
        == report._repr_html_()
    )


def test_a_report_lists_ten_violations_and_counts_the_others() -> None:
    """
    Those that the report itself does not describe one by one are counted, too.
    """
    came = chunk([[9.0, 0.25]] * 1100, "x", "gripper")
    report = gate(JOINT, GRIPPER).check(came, last_command=None)

    listed = [paragraph(text(str(each))) for each in report.violations[:10]]
    assert (
        card(
            "Safety report on <bdi>test</bdi>",
            badge(BAD, "Not safe to hand on: violations"),
            paragraph(
                "1,100 of 1,100 steps looked at, 2 dimensions; mode report; last command not known",
                quiet=True,
            ),
            table(
                ("found in what came", "values"),
                [
                    ("out of bounds", "1,100"),
                    ("not a level", "1,100"),
                    ("without a last command", "2"),
                ],
            ),
            details(
                "First violations", "".join(listed) + paragraph("… and 2,192 more", quiet=True)
            ),
        )
        == report._repr_html_()
    )


def test_a_report_says_why_in_plain_words() -> None:
    """
    And nothing of that where it does not know.
    """
    report = gate().check(chunk([[0.0]]), last_command=None)
    (violation,) = report.violations
    page = report._repr_html_()
    assert badge(BAD, "Not safe to hand on: first step unchecked") in page
    assert page.endswith(
        details("First violations", paragraph(text(str(violation)))) + card("", "")[-6:]
    )
    silent = attrs.evolve(report, reason=None)._repr_html_()
    assert badge(BAD, "Not safe to hand on") in silent


def test_what_was_vetted_says_what_it_was_vetted_for() -> None:
    """
    Its verdict first, then what it is, whose limits it keeps, and at the end what had been found.
    """
    robot = PRESETS["LeRobot SO-100 / SO-101 template"]
    came = chunk([[0.5] + [0.0] * 5], *robot.actions.names)
    keeping = SafetyGate(embodiment=robot, remedy=Remedy.CLAMP)
    vetted = keeping.vet(came, last_command=[0.0] * 6)
    page, report = vetted._repr_html_(), vetted.report._repr_html_()

    start = card(
        "Vetted: <bdi>test</bdi>",
        badge(GOOD, "Safe to hand on, after changes"),
        paragraph("1 x 6 (steps x dimensions), observed at 12.5 s", quiet=True),
        paragraph("<em>Template limits, certified by nobody.</em>"),
        "<svg ",
    ).removesuffix("</div>")
    assert page.startswith(start)
    said = report[report.index(paragraph("1 of 1 steps", quiet=True).removesuffix("</p>")) :]
    assert page.endswith(said)


def test_a_chunk_that_was_cut_off_says_how_many_steps_are_gone() -> None:
    """
    In its verdict, where nobody overlooks it.
    """
    came = chunk([[0.0], [math.nan], [0.0]])
    page = gate(remedy=Remedy.CLAMP).vet(came, last_command=[0.0])._repr_html_()
    assert badge(GOOD, "Safe to hand on, after changes, 2 steps cut off") in page


def test_what_was_vetted_for_a_space_names_nobodys_limits() -> None:
    """
    The gate was not told whose they are.
    """
    page = gate().vet(chunk([[0.0]]), last_command=[0.0])._repr_html_()
    said = paragraph("1 x 1 (steps x dimensions), observed at 12.5 s", quiet=True)
    assert f"{said}<svg " in page
