"""Statistics of the columns of a data set, made while its rows go by."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from vlmcore._arrays import Float64Array, UInt8Array

__all__ = ["FeatureStatistics", "RunningStatistics", "is_looked_at", "pixels_of"]

_KEPT = 4000  # rows of which quantiles are made
_QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}
_PIXELS_OF_A_SIDE = 150
_ALL_FRAMES, _OF_THE_REST = 100, 10  # of an episode


class RunningStatistics:
    """
    The smallest, the largest, mean, deviation and quantiles of each column.

    Quantiles are exact up to 4,000 rows; of more, as many are kept, evenly over all.

    Args:
        width: How many columns there are.
    """

    def __init__(self, width: int) -> None:
        self.rows = 0
        self._low = np.full(width, np.inf)
        self._high = np.full(width, -np.inf)
        self._mean = np.zeros(width)
        self._squares = np.zeros(width)  # sum of squares of the distances from the mean
        self._kept: list[Float64Array] = []
        self._stride = 1

    def add(self, rows: Float64Array) -> None:
        """Take rows in, finite, shape ``[N, W]``."""
        count, before = len(rows), self.rows
        if not count:
            return
        self._low = np.minimum(self._low, rows.min(axis=0))
        self._high = np.maximum(self._high, rows.max(axis=0))
        mean, total = rows.mean(axis=0), before + count
        apart = mean - self._mean
        self._squares += ((rows - mean) ** 2).sum(axis=0) + apart**2 * before * count / total
        self._mean += apart * count / total
        self.rows = total
        self._kept.extend(rows[-before % self._stride :: self._stride])
        while len(self._kept) > _KEPT:
            self._kept = self._kept[::2]
            self._stride *= 2

    def summary(self) -> dict[str, list[Any]]:
        """Say what was found, as LeRobot calls it."""
        kept = np.array(self._kept)
        found = {
            "min": self._low,
            "max": self._high,
            "mean": self._mean,
            "std": np.sqrt(self._squares / self.rows),
            **{name: np.quantile(kept, share, axis=0) for name, share in _QUANTILES.items()},
        }
        said = {name: values.tolist() for name, values in found.items()}
        return said | {"count": [self.rows]}


def pixels_of(frame: UInt8Array) -> Float64Array:
    """Take pixels of a frame, evenly and not too many, from 0 to 1, shape ``[N, 3]``."""
    height, width = frame.shape[:2]
    down, right = (max(1, side // _PIXELS_OF_A_SIDE) for side in (height, width))
    pixels: Float64Array = frame[::down, ::right].reshape(-1, 3) / 255.0
    return pixels


class FeatureStatistics:
    """
    Statistics of all features of a data set, or of one episode of it.

    Of pictures the first hundred are looked at, and every tenth of the rest.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, RunningStatistics] = {}
        self._pictures: dict[str, RunningStatistics] = {}
        self._looked_at: Counter[str] = Counter()

    def add(self, name: str, numbers: Float64Array) -> None:
        """Take in the numbers of a feature in one row, shape ``[W]``."""
        found = self._numbers.setdefault(name, RunningStatistics(len(numbers)))
        found.add(numbers[np.newaxis])

    def add_frame(self, name: str, pixels: Float64Array) -> None:
        """Take in pixels of a picture, shape ``[N, 3]``."""
        self._looked_at[name] += 1
        self._pictures.setdefault(name, RunningStatistics(3)).add(pixels)

    def summaries(self) -> dict[str, dict[str, list[Any]]]:
        """Say what was found of each feature; of a picture, of each channel."""
        said = {name: found.summary() for name, found in self._numbers.items()}
        for name, found in self._pictures.items():
            summary = found.summary()
            per_channel = {key: [[[each]] for each in values] for key, values in summary.items()}
            said[name] = per_channel | {"count": [self._looked_at[name]]}
        return said


def is_looked_at(row: int) -> bool:
    """Say whether the pictures of a row count, from row 0 of an episode."""
    return row < _ALL_FRAMES or row % _OF_THE_REST == 0
