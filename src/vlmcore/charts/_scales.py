"""From numbers to places on an axis, for every range that float64 has, and round numbers on it."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from functools import lru_cache

import attrs
import numpy as np

from vlmcore._arrays import Float64Array

__all__ = ["Scale", "Tick", "scale_around"]

_TEN = Fraction(10)
_PADDING = Fraction(6, 100)
_PLAIN = range(-4, 6)  # powers of ten that are written without an exponent


@attrs.frozen
class Tick:
    """A round number, where it is on the axis, from 0 to 1, and how it is written."""

    value: float
    place: float
    label: str


@attrs.frozen
class Scale:
    """
    An axis from *bottom* to *top*, finite, ``bottom < top``.

    The ends may be as far apart as float64 goes, where their difference overflows, or as near as
    subnormal numbers are, where a quotient does.
    """

    bottom: float
    top: float

    def places(self, values: Float64Array) -> Float64Array:
        """Say where *values* are: 0 is the bottom, 1 the top, others beyond; NaN stays."""
        exponent = max(math.frexp(self.bottom)[1], math.frexp(self.top)[1])
        with np.errstate(all="ignore"):  # what is far beyond becomes infinite, which is beyond too
            bottom, top = math.ldexp(self.bottom, -exponent), math.ldexp(self.top, -exponent)
            scaled: Float64Array = (np.ldexp(values, -exponent) - bottom) / (top - bottom)
        return scaled

    def place(self, value: float) -> float:
        """Say where one value is."""
        return float(self.places(np.array(value)))

    def ticks(self, most: int, *, whole: bool = False) -> tuple[Tick, ...]:
        """List at most about *most* round numbers, whole ones if it is said so."""
        return _ticks(self, max(1, most), whole=whole)


def scale_around(low: float, high: float) -> Scale:
    """Make a scale with a little room around ``low <= high``, also where they are the same."""
    span = Fraction(high) - Fraction(low)
    room = span * _PADDING if span else abs(Fraction(high)) / 10 or Fraction(1)
    most = Fraction(sys.float_info.max)
    bottom = float(max(Fraction(low) - room, -most))
    top = float(min(Fraction(high) + room, most))
    if not bottom < top:  # the room is less than float64 can tell
        bottom = math.nextafter(bottom, -math.inf)
        top = math.nextafter(top, math.inf)
    return Scale(bottom, top)


@lru_cache(maxsize=256)  # the bounds of a robot are the same from picture to picture
def _ticks(scale: Scale, most: int, *, whole: bool) -> tuple[Tick, ...]:
    bottom, top = Fraction(scale.bottom), Fraction(scale.top)
    least = (top - bottom) / most
    power = _power_of_ten(least)
    if whole and power < 0:
        power, least = 0, max(least, Fraction(1))
    steps = ((1, power), (2, power), (5, power), (1, power + 1))
    mantissa, power = next(each for each in steps if each[0] * _TEN ** each[1] >= least)
    step = mantissa * _TEN**power
    counts = range(math.ceil(bottom / step), math.floor(top / step) + 1)
    return tuple(
        Tick(
            float(count * step),
            float((count * step - bottom) / (top - bottom)),
            _written(count * mantissa, power),
        )
        for count in counts
    )


def _power_of_ten(number: Fraction) -> int:
    """Find the largest power of ten that is not above *number*, above 0."""
    power = len(str(number.numerator)) - len(str(number.denominator))
    return power if _TEN**power <= number else power - 1


def _written(count: int, power: int) -> str:
    """Write ``count * 10**power`` shortly and exactly."""
    if count == 0:
        return "0"
    sign, digits = "-" if count < 0 else "", str(abs(count))
    first = len(digits) - 1 + power  # the power of ten of the first digit
    if first in _PLAIN and (power in _PLAIN or len(digits) > len(_PLAIN)):
        return sign + _shifted(digits, power)
    mantissa = _shifted(digits, 1 - len(digits))
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{sign}{mantissa}e{first}"


def _shifted(digits: str, power: int) -> str:
    """Put the point into *digits*."""
    if power >= 0:
        return digits + "0" * power
    digits = digits.rjust(1 - power, "0")
    return f"{digits[:power]}.{digits[power:]}"
