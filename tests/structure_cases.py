"""Classes that answers are made into, for the tests of structure."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, Literal

import attrs
import pydantic

__all__ = ["Colour", "Dot", "Model", "Plain", "Scene"]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@attrs.frozen
class Dot:
    x: int
    y: float = 0.5


@attrs.frozen(kw_only=True)
class Scene:
    name: str
    dots: tuple[Dot, ...] = ()
    colour: Colour | None = None
    size: Literal["small", "large"] = "small"
    pair: tuple[int, str] | None = None
    counts: dict[str, int] = attrs.field(factory=dict)
    inner: Scene | None = None
    anything: Any = None
    hidden: int = attrs.field(default=1, init=False)
    _private: bool = False


@dataclasses.dataclass
class Plain:
    names: list[str]
    number: int | float | None = None


class Model(pydantic.BaseModel):
    names: list[str]
    count: int = pydantic.Field(ge=0, le=9)
