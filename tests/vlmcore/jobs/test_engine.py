"""Tests of `vlmcore.jobs.engine`: what is held, and how it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from caption_cases import Opened, Recorder, caption, captions, draw_many
from vlmcore.errors import ModelError
from vlmcore.jobs import captioning
from vlmcore.jobs.engine import Engine
from vlmcore.jobs.journal import Journal
from vlmcore.limits import JobLimits
from vlmcore.testing import EchoPredictor, echo
from vlmcore.vlm.prompt import Prompt


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[Engine]:
    """The engines of the jobs that were run."""
    made: list[Engine] = []

    def make(*args: Any, **kwargs: Any) -> Engine:
        made.append(Engine(*args, **kwargs))
        return made[-1]

    monkeypatch.setattr(captioning, "Engine", make)
    return made


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"batch_size": 1},
        {"batch_size": 64},  # a group is larger than what is read ahead
        {"reuse_identical": True, "near_duplicates": 4},
        {"prompts": ["What?"], "limits": JobLimits(max_ahead_images=1, max_readers=1)},
        {"limits": JobLimits(max_ahead_images=5, max_ahead_bytes=1, max_readers=2)},
    ],
)
def test_a_job_comes_to_its_end_and_holds_nothing_then(
    fields: dict[str, Any], engines: list[Engine], tmp_path: Path
) -> None:
    """
    However little is read ahead, and however much is asked at once.
    """
    paths = draw_many(tmp_path, 40)
    paths[7].write_bytes(b"no image")
    paths[9].write_bytes(paths[8].read_bytes())
    fields = {key: "What?" if key == "prompts" else value for key, value in fields.items()}
    for _ in range(2):
        assert 40 == caption(tmp_path, **fields).total
    assert [0, 0] == [engine.held_bytes for engine in engines]


@pytest.mark.parametrize("error", [ModelError("echo", "is gone"), RuntimeError("a bug")])
def test_what_was_answered_before_an_error_is_kept(error: Exception, tmp_path: Path) -> None:
    """
    The model is given back, no thread is left, and the next run goes on.
    """
    draw_many(tmp_path, 9)

    def answer(prompt: Prompt) -> str:
        if "#000005" in echo(prompt):
            raise error
        return echo(prompt)

    before = threading.active_count()
    model = Opened(Recorder(answer).predictor, identity="echo")
    with pytest.raises(type(error), match=r"is gone|a bug"):
        caption(tmp_path, model, batch_size=1)
    assert (before, 1, 1) == (threading.active_count(), model.opened, model.closed)
    done = len(captions(tmp_path))
    assert 1 <= done < 9
    again = Recorder()
    assert 0 == caption(tmp_path, again).failed
    assert 9 - done == len(again.asked)


def test_a_batch_costs_two_commits_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    One before its files are written and one after; none for each image that was read.
    """
    commits: list[str] = []
    commit: Callable[[Journal], None] = Journal.commit

    def counted(journal: Journal) -> None:
        if journal.database.in_transaction:
            commits.append("")
        commit(journal)

    monkeypatch.setattr(Journal, "commit", counted)
    monkeypatch.setattr(captioning, "_EVERY_S", 3600.0)
    draw_many(tmp_path, 64)
    caption(tmp_path, EchoPredictor(), batch_size=8)
    assert 2 * 8 + 2 >= len(commits)
    commits.clear()
    caption(tmp_path, EchoPredictor(), batch_size=8)
    assert 2 >= len(commits)


def test_a_folder_with_many_files_is_counted_and_passed_over_quickly(tmp_path: Path) -> None:
    """
    What is done is looked up and not read: no more is held than of a few.
    """
    draw_many(tmp_path, 1)
    for n in range(1, 2000):
        (tmp_path / f"{n:05d}.png").write_bytes(b"no image")
    limits = JobLimits(max_failures_told=5)
    first = caption(tmp_path, limits=limits)
    again = caption(tmp_path, limits=limits)
    assert (1999, 1999, 5) == (first.failed, again.failed, len(again.failures))
