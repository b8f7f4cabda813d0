"""Tests of `vlmcore.rollout.recorded_moments`."""

from __future__ import annotations

from pathlib import Path

import attrs
import numpy as np
import pytest

from dataset_cases import record, seen
from episode_cases import observation, step, write
from vlmcore.errors import ContractError
from vlmcore.rollout import encode_frames
from vlmcore.rollout.episode_frames import FrameEncoding
from vlmcore.rollout.episode_reader import EpisodeReader
from vlmcore.rollout.recorded_moments import EpisodeMoments, RecordedEpisode, observation_of


def test_each_observation_comes_with_what_was_sent_until_the_next(tmp_path: Path) -> None:
    """
    And with what was sent before it.
    """
    episode = EpisodeMoments(record(tmp_path / "a", sent=(2, 1, 3)), name="run")
    assert isinstance(episode, RecordedEpisode)
    assert ("run", ("x", "y")) == (episode.name, episode.action_names)
    moments = list(episode.moments())
    assert [[0.01, 0.02], [0.03], [0.04, 0.05, 0.06]] == [
        each.sent[:, 0].round(3).tolist() for each in moments
    ]
    assert all(each.is_followed for each in moments)
    lasts = [None if each.last_command is None else each.last_command[0] for each in moments]
    assert [0.0, 0.02, 0.03] == pytest.approx(lasts)
    assert seen(1) == moments[1].observe()


def test_steps_that_show_the_same_observation_are_one_moment(tmp_path: Path) -> None:
    """
    What was sent after all of them is one row of actions.
    """
    episode = record(tmp_path / "a", sent=(1, 2, 1), observe=lambda i: seen(i // 2))
    first, second = EpisodeMoments(episode).moments()
    assert (3, 1) == (len(first.sent), len(second.sent))
    assert seen(0) == first.observe()


def test_after_a_chunk_of_which_nothing_was_sent_nobody_knows_the_time(tmp_path: Path) -> None:
    """
    What came later for the same observation is no part of it.
    """
    episode = record(tmp_path / "a", sent=(1, 0, 2, 1), observe=lambda i: seen(i // 3))
    first, second = EpisodeMoments(episode).moments()
    assert (1, False) == (len(first.sent), first.is_followed)
    assert (1, True) == (len(second.sent), second.is_followed)


@pytest.mark.parametrize(
    ("source", "later_s", "rows", "is_followed"),
    [("hold", 0.001, 3, True), ("hold", 0.05, 1, False), ("test", 0.001, 1, False)],
    ids=["in the same control step", "in another one", "another chunk"],
)
def test_standing_still_in_place_of_a_refused_step_is_what_was_sent(
    tmp_path: Path, source: str, later_s: float, rows: int, *, is_followed: bool
) -> None:
    """
    A latch that refused one step ended the moment, though no control step was missing.
    """
    still = step([[0.0, 0.0]], executed_steps=1)
    still = attrs.evolve(
        still,
        at_s=7.5 + later_s,
        chunk=attrs.evolve(still.chunk, source=source),
        report=attrs.evolve(still.report, policy_source=source),
    )
    sent = step([[0.05, 0.0]], executed_steps=1)
    path = write(tmp_path / "a.jsonl", sent, step(executed_steps=0), still, sent)
    (moment,) = EpisodeMoments(EpisodeReader(path)).moments()
    assert (rows, is_followed) == (len(moment.sent), moment.is_followed)


def test_an_observation_is_made_again_from_all_frames_or_the_newest() -> None:
    """
    The newest alone is then its history.
    """
    was = observation(frames=3)
    every = encode_frames(was, FrameEncoding.PNG, newest_only=False)
    assert was == observation_of(step(observation=was.summary(), frames=every))
    newest = encode_frames(was, FrameEncoding.PNG)
    again = observation_of(step(observation=was.summary(), frames=newest))
    assert attrs.evolve(was, images={"front": was.images["front"][-1]}) == again
    assert np.array_equal(was.images["front"][-1:], again.images["front"])


def test_frames_that_were_not_kept_are_not_made_up() -> None:
    """
    Neither those of a camera nor the oldest of them.
    """
    was = observation(frames=3)
    with pytest.raises(ContractError, match=r"frames\['front'\]: got none, expected all or"):
        observation_of(step(observation=was.summary()))
    two = encode_frames(was, FrameEncoding.PNG, newest_only=False)["front"][1:]
    with pytest.raises(ContractError, match=r"got the frames \[1, 2\] of 3, expected all or"):
        observation_of(step(observation=was.summary(), frames={"front": two}))


@pytest.mark.parametrize("longest_px", [1, 3])
def test_thumbnails_are_not_taken_for_what_the_camera_showed(longest_px: int) -> None:
    """
    A policy that is shown them is not the one that was asked.
    """
    was = observation(frames=2)
    sides = " x ".join(map(str, was.images["front"].shape[1:3]))
    for newest_only in (True, False):
        small = encode_frames(was, longest_px=longest_px, newest_only=newest_only)
        with pytest.raises(ContractError, match=rf"frames\['front'\]: got .* expected {sides} "):
            observation_of(step(observation=was.summary(), frames=small))
    whole = encode_frames(was, FrameEncoding.PNG, newest_only=False)["front"]
    mixed = (encode_frames(was, longest_px=1, newest_only=False)["front"][0], whole[1])
    with pytest.raises(
        ContractError, match=rf"frames\['front'\]: got 1 x 1 pixels, expected {sides} "
    ):
        observation_of(step(observation=was.summary(), frames={"front": mixed}))
