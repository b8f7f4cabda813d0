"""Tests of `vlmcore.charts._styles`: 32 lines that people tell apart."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from vlmcore.charts._styles import COLOURS, STYLES, faded

# What is seen of linear RGB by people who lack a kind of cone, Machado et al. 2009, severity 1.
SEEN = {
    "by most": np.eye(3),
    "without red": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "without green": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "without blue": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)


def linear(colour: str) -> np.ndarray:
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(seen: np.ndarray) -> np.ndarray:
    """CIE L*a*b*, in which a distance of 2.3 is just noticed."""
    white = np.array([0.95047, 1.0, 1.08883])
    x, y, z = np.cbrt(np.clip(TO_XYZ @ np.clip(seen, 0, 1) / white, 0.008856, None))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("eye", SEEN)
def test_colours_stay_apart_for_eyes_that_see_fewer(eye: str) -> None:
    """
    Each pair by far more than is just noticed, since lines are thin.
    """
    seen = {colour: lab(np.array(SEEN[eye]) @ linear(colour)) for colour in COLOURS}
    apart = {
        pair: float(np.linalg.norm(seen[pair[0]] - seen[pair[1]]))
        for pair in itertools.combinations(COLOURS, 2)
    }
    assert {} == {pair: distance for pair, distance in apart.items() if distance < 15}


def test_every_colour_is_seen_on_white() -> None:
    """
    A contrast of two at least; the dark ones have far more.
    """
    contrasts = {colour: 1.05 / (TO_XYZ[1] @ linear(colour) + 0.05) for colour in COLOURS}
    assert {} == {colour: contrast for colour, contrast in contrasts.items() if contrast < 2}


def test_32_lines_look_different() -> None:
    """
    Where colours come round again, dashes differ.
    """
    assert 32 == len(set(STYLES))


def test_what_stands_behind_is_lighter() -> None:
    """
    Two thirds of the way to white.
    """
    assert ("#aaaaaa", "#ffffff") == (faded("#000000"), faded("#ffffff"))
