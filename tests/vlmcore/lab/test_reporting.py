"""The report: what stands on it, and what does not."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import attrs
import pytest

from artifact_cases import media
from lab_report_cases import SUITE, artifact, sample, two, written
from vlmcore.errors import ArtifactError, ArtifactTamperedError, ContractError
from vlmcore.lab.artifact_files import artifact_bytes, artifact_name
from vlmcore.lab.artifacts import Artifact
from vlmcore.lab.events import Failure, FailureKind
from vlmcore.lab.report_contents import Interval, RunFigures
from vlmcore.lab.report_figures import figures_of
from vlmcore.lab.reporting import report_html, write_report
from vlmcore.lab.verifying import verify_bytes


def figures(made: Artifact) -> RunFigures:
    data = artifact_bytes(made)
    return figures_of(verify_bytes(data, name=artifact_name(made.start.label, data)))


def test_figures_are_those_of_the_raw_events() -> None:
    """
    Medians with their intervals, tokens, and no 95th percentile of so few.
    """
    run = figures(artifact([sample("dog", "mine", i, 100.0 + i) for i in range(9)], "mine"))

    (target,) = run.targets
    dog, cat = target.cases
    assert ("dog", 9, 0, 1.0, "3", 1) == (
        dog.case, dog.requests, dog.failed, dog.quality, dog.tokens, dog.answers,
    )  # fmt: skip
    first = dog.times[0]
    assert re.fullmatch(r"104\.0 ms \(10\d\.0 to 10\d\.0\)", first.middle)
    assert ("first token", "not at n = 9") == (first.title, first.high)
    assert (0, None, "not known") == (cat.requests, cat.quality, cat.times[0].middle)
    assert ("single", "") == (run.kind, run.verdict)


def test_requests_that_failed_count_against_quality() -> None:
    """
    A case is not good because only its easy requests came back.
    """
    broken = {"failure": Failure(kind=FailureKind.TIMEOUT), "usage": None}
    run = figures(
        artifact([sample("dog", "mine", 0, 9.0), sample("dog", "mine", 1, 9.0, **broken)], "mine")
    )

    assert (2, 1, 0.5) == attrs.astuple(run.targets[0].cases[0])[1:4]


@pytest.mark.parametrize(
    ("times", "kind", "speed"),
    [(0.5, "win", "faster"), (2.0, "regression", "slower"), (1.0, "open", "inconclusive")],
)
def test_a_comparison_stands_where_it_belongs(times: float, kind: str, speed: str) -> None:
    """
    With its ratios on a logarithmic axis, and the control beside them.
    """
    run = figures(two(times))

    assert kind == run.kind
    assert run.verdict.endswith(": new against old")
    assert [speed] * 3 == [each.speed for each in run.intervals]
    expected = {0.5: 0.5 - 1 / 6, 2.0: 0.5 + 1 / 6, 1.0: 0.5}[times]
    assert [pytest.approx(expected, abs=0.01)] * 3 == [each.middle for each in run.intervals]
    assert [pytest.approx(0.5, abs=0.01)] * 3 == [each.control for each in run.intervals]
    assert {"the same, character by character"} == {said for _, said in run.fidelity}


def test_targets_that_were_given_something_else_are_not_compared() -> None:
    """
    The reason names it.
    """
    made = two(0.5)
    first, *rest = made.start.inputs
    others = [attrs.evolve(first, prompt_sha256="9" * 64), *rest]
    run = figures(attrs.evolve(made, start=attrs.evolve(made.start, inputs=others)))

    assert ("open", "not comparable") == (run.kind, run.verdict)
    assert "prompts" in run.reasons[0]


def test_smaller_pictures_that_were_declared_are_what_changed() -> None:
    """
    The page tells of them, and compares.
    """
    made = two(0.5)
    identity = made.start.identity
    small = attrs.evolve(identity.targets[1], options={"longest_edge_px": "448"})
    inputs = [
        attrs.evolve(each, media=[media(width_px=448 if each.target == "new" else 2048)])
        for each in made.start.inputs
    ]
    start = attrs.evolve(
        made.start,
        identity=attrs.evolve(identity, targets=[identity.targets[0], small]),
        inputs=inputs,
    )
    run = figures(attrs.evolve(made, start=start))

    assert "win" == run.kind
    assert ("longest edge px", "none", "448") in run.changed


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs_: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs_)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


HOSTILE = "<script>alert(1)</script>\"'&{{ 7 * 777 }}<img src=x onerror=y>"


def test_a_page_needs_nothing_else_and_runs_nothing(tmp_path: Path) -> None:
    """
    No script, no address, whatever names and words there are in the evidence.
    """
    made = two(0.5)
    suite = {"name": HOSTILE, "cases": SUITE["cases"]}
    made = attrs.evolve(made, start=attrs.evolve(made.start, suite=suite))
    page = _Page(report_html([written(tmp_path, made)], title=HOSTILE))

    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "img", "link", "iframe", "object", "base", "form"}
    assert HOSTILE in page.words
    for _, found in page.tags:
        assert not [name for name in found if name.startswith("on")]
        assert all((found.get(name) or "#").startswith("#") for name in ("href", "src"))
    assert "5439" not in "".join(page.words)


def test_a_report_of_evidence_that_was_edited_is_refused(tmp_path: Path) -> None:
    """
    Nothing is written, and the page that was there stays.
    """
    good, bad = written(tmp_path, two(0.5)), written(tmp_path, two(2.0))
    bad.write_bytes(bad.read_bytes().replace(b'"text":"dog"', b'"text":"cat"', 1))
    page = tmp_path / "report.html"
    page.write_text("of yesterday")

    with pytest.raises(ArtifactTamperedError, match=r"\$\.samples\["):
        write_report([good, bad], page)

    assert "of yesterday" == page.read_text()
    write_report([good], page)
    assert page.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("count", [0, 101])
def test_none_and_too_many_artifacts_are_refused(tmp_path: Path, count: int) -> None:
    """
    A page of a hundred runs is long enough.
    """
    path = written(tmp_path, two(1.0))
    with pytest.raises(ContractError, match=f"got {count}, expected 1 to 100"):
        report_html([path] * count)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """
    As for every command that reads artifacts.
    """
    with pytest.raises(ArtifactError, match=r"nope\.json"):
        report_html([tmp_path / "nope.json"])


def test_places_on_the_chart_stay_on_it() -> None:
    """
    A ratio of a thousand stands at its end.
    """
    run = figures(two(1000.0))
    intervals: tuple[Interval, ...] = run.intervals

    assert [1.0] * 3 == [each.middle for each in intervals]
