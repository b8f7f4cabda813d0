"""What a journal says, as rows of a table and as a summary; also while a job is at work."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from vlmcore.errors import JobJournalError
from vlmcore.jobs.journal import Answer, Journal, Outcome
from vlmcore.jobs.plans import CaptionPlan
from vlmcore.jobs.reports import Failure
from vlmcore.jobs.rows import CaptionRow
from vlmcore.jobs.sinks.tables import TableKind, write_table
from vlmcore.jobs.templates import CaptionTemplate, Cut

__all__ = ["JobStatus", "export_table", "plan_document", "rows_of", "status_of"]

# The images that are meant: those of the last run, and where it has not met all of them yet, those
# of the runs before. What became of one in answer to other questions is no news of these.
_IMAGES = """
SELECT {columns} FROM (SELECT
    key, run, position, width_px, height_px, duplicate_of, problem, digest, CASE
    WHEN outcome IN ('captioned', 'failed') AND width_px IS NOT NULL AND (
        SELECT count(*) FROM answers WHERE answers.key = images.key
        AND answers.digest = images.digest AND model = ? AND mark IN ({marks})
    ) < {count} THEN 'waiting' ELSE outcome END AS outcome
FROM images WHERE run >= (SELECT coalesce(max(run), 0) FROM runs WHERE is_listed)) {rest}
"""
_KEPT = "it had a caption file that is not the job's"


def plan_document(plan: CaptionPlan, model: str) -> dict[str, Any]:
    """Write down of a plan what is needed to make tables of its answers later on."""
    template = plan.template
    fields = {a.name: getattr(template, a.name) for a in attrs.fields(CaptionTemplate) if a.init}
    return {
        "model": model,
        "source": plan.source.name,
        "prompts": [
            {"name": p.name, "mark": mark, "is_json": p.options.output is not None}
            for p, mark in zip(plan.prompts, plan.marks, strict=True)
        ],
        "template": {**fields, "cut": template.cut.value},
    }


@attrs.frozen(kw_only=True)
class _Told:
    """What a plan was, read back."""

    model: str
    source: str
    marks: Mapping[str, str]
    structured: tuple[str, ...]
    template: CaptionTemplate

    @classmethod
    def of_last_run(cls, journal: Journal) -> tuple[int, _Told]:
        with journal.told():
            found = journal.database.execute(
                "SELECT run, plan FROM runs ORDER BY run DESC LIMIT 1"
            ).fetchone()
        if found is None:
            raise JobJournalError(journal.name, "no job has run here")
        run, text = found
        document = json.loads(text)
        template = document["template"]
        return run, cls(
            model=document["model"],
            source=document["source"],
            marks={each["mark"]: each["name"] for each in document["prompts"]},
            structured=tuple(each["name"] for each in document["prompts"] if each["is_json"]),
            template=CaptionTemplate(**{**template, "cut": Cut(template["cut"])}),
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The captions of a row, one that a text puts together, or one for each prompt."""
        names = tuple(self.marks.values())
        return ("caption",) if len(names) == 1 or self.template.text is not None else names

    def look(self, journal: Journal, columns: str, rest: str, *values: Any) -> sqlite3.Cursor:
        """Look for what a journal says of the images that are meant."""
        places = ", ".join("?" * len(self.marks))
        query = _IMAGES.format(columns=columns, marks=places, count=len(self.marks), rest=rest)
        return journal.database.execute(query, [self.model, *self.marks, *values])

    def row(self, image: tuple[Any, ...], answers: Mapping[str, Answer]) -> CaptionRow:
        """Make the row of an image."""
        key, width_px, height_px, outcome, duplicate_of, problem = image
        texts = {name: answers[mark].text for mark, name in self.marks.items() if mark in answers}
        captions: dict[str, str] = {}
        if outcome == Outcome.CAPTIONED.value and len(texts) == len(self.marks):
            captions = self._captions(key, texts)
        values = {
            self.columns[0] if len(self.columns) == 1 else name: answers[mark].value
            for mark, name in self.marks.items()
            if captions and answers[mark].value is not None
        }
        return CaptionRow(
            key=key,
            captions=captions,
            values=values if len(values) <= len(self.columns) else {},
            model=self.model,
            width_px=width_px,
            height_px=height_px,
            duplicate_of=duplicate_of,
            error=problem or (_KEPT if outcome == Outcome.KEPT.value else ""),
        )

    def _captions(self, key: str, texts: Mapping[str, str]) -> dict[str, str]:
        if len(self.columns) == 1:
            return {self.columns[0]: self.template.render(texts, key=key)}
        return {name: self.template.render({name: text}, key=key) for name, text in texts.items()}


@attrs.frozen(kw_only=True)
class JobStatus:
    """
    How far a job is.

    Attributes:
        source: What its images were, as it was named.
        model: What was asked.
        counts: How many images there are of each outcome.
        failures: The failures, in the order of the source; as many as were asked for.
        runs: How many runs there were.
    """

    source: str
    model: str
    counts: dict[Outcome, int]
    failures: tuple[Failure, ...]
    runs: int


def status_of(journal: Journal, *, most_failures: int) -> JobStatus:
    """
    Summarise what became of the images of a job, as its last run asked about them.

    Raises:
        JobJournalError: If there was none.
    """
    run, told = _Told.of_last_run(journal)
    with journal.told():
        counted = dict(told.look(journal, "outcome, count(*)", "GROUP BY outcome").fetchall())
        failed = told.look(
            journal,
            "key, problem",
            "WHERE outcome = ? ORDER BY position, run DESC LIMIT ?",
            Outcome.FAILED.value,
            most_failures,
        ).fetchall()
    return JobStatus(
        source=told.source,
        model=told.model,
        counts={outcome: counted.get(outcome.value, 0) for outcome in Outcome},
        failures=tuple(Failure(key=key, problem=problem) for key, problem in failed),
        runs=run,
    )


def rows_of(journal: Journal) -> Iterator[CaptionRow]:
    """
    Give a row for each image that is done with as the last run asked, in the order of the source.

    Raises:
        JobJournalError: If there was no run.
    """
    _, told = _Told.of_last_run(journal)
    with journal.told():
        images = told.look(
            journal,
            "key, width_px, height_px, outcome, duplicate_of, problem, digest",
            "WHERE outcome != ? ORDER BY position, run DESC",
            Outcome.WAITING.value,
        )
        for *image, digest in images:
            answers: dict[str, Answer] = {}
            if digest is not None:
                answers = journal.answers(image[0], digest, told.model, list(told.marks))
            yield told.row(tuple(image), answers)


def export_table(journal: Journal, path: Path, kind: TableKind) -> int:
    """
    Write the rows of a job to a table, whole or not at all, and return how many there are.

    Raises:
        JobJournalError: If there was no run, or the journal cannot be read.
        JobSinkError: If the table cannot be written.
        MissingDependencyError: If a package is not installed that the kind needs.
    """
    _, told = _Told.of_last_run(journal)
    structured = told.structured if len(told.columns) > 1 or len(told.marks) == 1 else ()
    if len(told.columns) == 1 and structured:
        structured = told.columns
    return write_table(
        path, rows_of(journal), prompts=told.columns, structured=structured, kind=kind
    )
