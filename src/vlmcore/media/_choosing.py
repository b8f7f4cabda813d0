"""How frames are chosen once it is known when they are and what changes in them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from vlmcore._arrays import BoolArray, Float64Array
from vlmcore.media._changes import Changes
from vlmcore.media.selections import (
    FrameReason,
    FrameSampling,
    FrameSelection,
    SampledFrame,
    SamplingStrategy,
)

__all__ = ["select_by_changes", "select_evenly"]

_TOLERANCE_S = 1e-9  # of times that are sums of floats
# How much of the way from the first place to the last is motion, the rest being time.
_MOTION = {SamplingStrategy.MOTION: 0.75, SamplingStrategy.HYBRID: 0.5}


def select_evenly(times_s: Float64Array, sampling: FrameSampling) -> FrameSelection:
    """Choose frames at even steps of time; *times_s* ascend, shape ``[T]``, T at least 1."""
    chosen = _take_places(times_s, _way(times_s), {}, sampling)
    return _selection(times_s, dict.fromkeys(chosen, FrameReason.COVERAGE), sampling)


def select_by_changes(
    changes: Changes, sampling: FrameSampling, *, tracks: Float64Array | None = None
) -> FrameSelection:
    """Choose frames by what was measured, and by how much *tracks* change, shape ``[T]``."""
    times = changes.times_s
    cuts = changes.cuts()
    motion = changes.motion(cuts)
    share = _MOTION.get(sampling.strategy, 0.0) if motion.sum() > 0 else 0.0
    way = (1 - share) * _way(times) + share * _shares(motion)
    events = _events(cuts, tracks, sampling)
    reasons = {}
    for index in _take_places(times, way, events, sampling):
        moves = share > 0 and motion[index] > motion.mean()
        reasons[index] = events.get(index, FrameReason.MOTION if moves else FrameReason.COVERAGE)
    return _selection(times, reasons, sampling, changes=changes, cuts=cuts)


def _way(times_s: Float64Array) -> Float64Array:
    """Return how far each frame is from the first to the last, 0 to 1."""
    length = float(times_s[-1] - times_s[0])
    way: Float64Array = (times_s - times_s[0]) / (length or 1.0)
    return way


def _shares(motion: Float64Array) -> Float64Array:
    shares: Float64Array = np.cumsum(motion) / (motion.sum() or 1.0)
    return shares


def _events(
    cuts: list[int], tracks: Float64Array | None, sampling: FrameSampling
) -> dict[int, FrameReason]:
    """List the frames that come first, the most important of them at the front."""
    changed: list[int] = []
    if tracks is not None:
        changed = [i for i in np.argsort(-tracks, kind="stable").tolist() if tracks[i] > 0]
    at_most = {
        SamplingStrategy.SCENES: (sampling.max_frames, 0),
        SamplingStrategy.TRACKS: (0, sampling.max_frames),
        SamplingStrategy.HYBRID: (sampling.max_frames // 2, sampling.max_frames // 4),
    }.get(sampling.strategy, (0, 0))
    events = dict.fromkeys(cuts[: at_most[0]], FrameReason.SCENE)
    for index in changed[: at_most[1]]:
        events.setdefault(index, FrameReason.TRACK)
    return events


def _take_places(
    times_s: Float64Array, way: Float64Array, events: Iterable[int], sampling: FrameSampling
) -> list[int]:
    """Spread places along *way*; let the events take the nearest, and then the other frames."""
    count = min(sampling.max_frames, len(times_s))
    length = float(times_s[-1] - times_s[0])
    if sampling.minimum_gap_s * (count - 1) > length:
        count = int(length / sampling.minimum_gap_s + _TOLERANCE_S) + 1
    places = np.linspace(0, 1, count) if count > 1 else np.array([0.5])
    may_be = np.ones(len(times_s), dtype=np.bool_)
    chosen: list[int] = []
    for index in events:
        if places.size and may_be[index]:
            places = np.delete(places, np.argmin(np.abs(places - way[index])))
            chosen.append(index)
            _keep_apart(may_be, times_s, index, sampling)
    for place in places:
        if may_be.any():
            chosen.append(int(np.argmin(np.where(may_be, np.abs(way - place), np.inf))))
            _keep_apart(may_be, times_s, chosen[-1], sampling)
    return sorted(chosen)


def _keep_apart(
    may_be: BoolArray, times_s: Float64Array, index: int, sampling: FrameSampling
) -> None:
    may_be[index] = False
    may_be &= np.abs(times_s - times_s[index]) >= sampling.minimum_gap_s - _TOLERANCE_S


def _selection(
    times_s: Float64Array,
    reasons: dict[int, FrameReason],
    sampling: FrameSampling,
    *,
    changes: Changes | None = None,
    cuts: Iterable[int] = (),
) -> FrameSelection:
    frames = tuple(
        SampledFrame(
            timestamp_s=float(times_s[index]),
            index=index,
            reason=reason,
            change=None if changes is None else float(changes.change[index]),
        )
        for index, reason in reasons.items()
    )
    return FrameSelection(
        frames=frames,
        strategy=sampling.strategy,
        scanned_frames=0 if changes is None else len(times_s),
        duration_s=float(times_s[-1] - times_s[0]),
        cuts_s=tuple(float(times_s[index]) for index in sorted(cuts)),
    )
