"""Tests of `vlmcore.testing.rollout_strategies`: they draw what is hard, and what is true."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings

from vlmcore.contracts.presets import find_embodiment
from vlmcore.rollout import (
    EpisodeFailure,
    EpisodeReader,
    EpisodeStep,
    EpisodeWriter,
    OpenLoopReport,
    ShadowReport,
)
from vlmcore.rollout.episode_frames import FrameEncoding
from vlmcore.rollout.open_loop_documents import open_loop_report_from_json, open_loop_report_to_json
from vlmcore.testing.rollout_strategies import (
    encoded_frames,
    episode_failures,
    episode_steps,
    episodes,
    max_ages,
    open_loop_reports,
    policy_calls,
    replan_reports,
    shadow_reports,
    timed_observations,
)

# What is found first is enough: the smallest one takes long to find.
QUICK = settings(
    phases=[Phase.generate], max_examples=2000, database=None, suppress_health_check=HealthCheck
)
ROBOT = find_embodiment("aloha_bimanual_template")

FOUND: list[tuple[Any, Callable[[Any], bool]]] = [
    (replan_reports(), lambda report: report.transition_steps_applied > 0),
    (replan_reports(), lambda report: report.output_horizon < report.new_horizon),
    (replan_reports(), lambda report: report.remaining_previous_steps == 0),
    (max_ages(), lambda ages: ages.cameras_s and ages.unchanged_s is not None),
    (timed_observations(), lambda seen: 0 < len(seen.captured_at_s) < len(seen.observation.images)),
    (encoded_frames(), lambda frame: frame.encoding is FrameEncoding.JPEG and frame.frame_index),
    (policy_calls(), lambda call: call.took_s > 1),
    (open_loop_reports(), lambda report: report.horizon == 0),
    (open_loop_reports(), lambda report: report.gate is None and report.latency is not None),
    (open_loop_reports(), lambda report: 0 < (report.count > 0).sum() < report.count.size),
    (open_loop_reports(), lambda report: 0 < sum(report.has_levels) < len(report.names)),
    (shadow_reports(), lambda report: report.compared == 0),
    (shadow_reports(), lambda report: report.candidate_refused > report.policy_refused),
    (episode_steps(), lambda step: not step.chunk.is_finite),
    (episode_steps(), lambda step: step.vetted is not None and step.report.changed),
    (episode_steps(), lambda step: step.executed_steps > 0),
    (episode_steps(), lambda step: len(step.frames) > 1 and step.call is not None),
    (episode_steps(), lambda step: len(step.position) > 0),
    (episode_failures(embodiment=ROBOT), lambda failed: failed.call is not None),
    (episodes(), lambda episode: {*map(type, episode[1])} == {EpisodeStep, EpisodeFailure}),
]


@pytest.mark.parametrize(("strategy", "wanted"), FOUND)
def test_what_breaks_things_is_drawn(strategy: Any, wanted: Callable[[Any], bool]) -> None:
    """
    A strategy that draws only what is easy proves nothing.
    """
    find(strategy, wanted, settings=QUICK)


@settings(max_examples=25, deadline=None)
@given(episodes())
def test_an_episode_is_what_a_writer_takes_and_a_reader_gives_back(episode: Any) -> None:
    """
    Bit by bit, failures too.
    """
    header, lines = episode
    with TemporaryDirectory() as folder:
        path = Path(folder) / "episode.jsonl"
        with EpisodeWriter(path, header) as writer:
            for line in lines:
                writer.append(line)
        reader = EpisodeReader(path)
        assert header == reader.header
        assert list(lines) == list(reader.events())


def test_what_is_drawn_for_a_robot_is_of_that_robot() -> None:
    """
    So that a test of one robot need not filter.
    """
    header, lines = find(
        episodes(embodiment=ROBOT), lambda episode: len(episode[1]) > 1, settings=QUICK
    )
    assert ROBOT is header.embodiment
    for line in lines:
        assert len(ROBOT.state_names) == len(line.observation.state)
    timed = find(timed_observations(embodiment=ROBOT), lambda _: True, settings=QUICK)
    assert {camera.name for camera in ROBOT.cameras} == set(timed.observation.images)


@given(open_loop_reports())
def test_an_open_loop_report_comes_back_as_it_was(report: OpenLoopReport) -> None:
    """
    Exactly, NaN too; and it can be told and shown.
    """
    assert report == open_loop_report_from_json(open_loop_report_to_json(report))
    assert str(report)
    assert report._repr_html_()


@given(shadow_reports())
def test_a_shadow_report_can_be_told(report: ShadowReport) -> None:
    """
    One line a column, under three of its own, whatever the columns are called.
    """
    assert len(report.names) + 3 == len(str(report).split("\n"))
    assert report == pickle.loads(pickle.dumps(report))
