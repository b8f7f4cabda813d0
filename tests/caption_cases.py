"""Small folders to caption, a model that remembers what it was asked, and jobs over them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from PIL import Image

from vlmcore.jobs.captioning import caption_images, journal_of
from vlmcore.jobs.items import BytesContent, Item
from vlmcore.jobs.journal import Journal
from vlmcore.jobs.models import JobModel
from vlmcore.jobs.plans import CaptionPlan
from vlmcore.jobs.reports import JobReport
from vlmcore.jobs.sinks.settings import Sidecars
from vlmcore.jobs.sources.folders import FolderImages
from vlmcore.testing import EchoPredictor, echo
from vlmcore.vlm.predictor import Predictor
from vlmcore.vlm.prompt import Prompt

WHAT = "What?"


def colour(number: int) -> tuple[int, int, int]:
    """Give each number to 2 ** 24 a colour of its own."""
    return number >> 16 & 255, number >> 8 & 255, number & 255


def draw(path: Path, number: int, size: tuple[int, int] = (8, 6)) -> Path:
    """Draw an image in the colour of *number*."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour(number)).save(path)
    return path


def draw_many(folder: Path, count: int) -> list[Path]:
    """Draw images of three sizes, each in a colour of its own."""
    sizes = ((8, 6), (6, 8), (12, 4))
    return [draw(folder / f"{n:05d}.png", n, sizes[n % 3]) for n in range(count)]


def said_of(number: int, size: tuple[int, int] = (8, 6), text: str = WHAT) -> str:
    """Say what an echo says about the image of a number."""
    hexadecimal = "".join(f"{channel:02x}" for channel in colour(number))
    return f"{text} [image {size[0]}x{size[1]} #{hexadecimal}]"


def pattern(seed: int, size: int = 32) -> Image.Image:
    """Draw a picture with a structure of its own, which looks the same in any size."""
    fields = np.random.default_rng(seed).integers(0, 256, (8, 9, 3), np.uint8)
    return Image.fromarray(fields).resize((size, size), Image.Resampling.BILINEAR)


class Recorder:
    """An echo that remembers what it was asked; *answer* may say, or raise, something else."""

    def __init__(self, answer: Callable[[Prompt], str] = echo, **settings: Any) -> None:
        self.asked: list[str] = []
        self._answer = answer
        self._lock = threading.Lock()
        self.predictor = EchoPredictor(answer=self._say, **settings)

    def _say(self, prompt: Prompt) -> str:
        with self._lock:
            self.asked.append(echo(prompt))
        return self._answer(prompt)


@attrs.define
class Opened:
    """A `JobModel` that says when it was loaded, and whether it was given back."""

    predictor: Predictor
    is_served: bool = False
    identity: str = "opened"
    opened: int = 0
    closed: int = 0

    def open(self) -> Predictor:
        self.opened += 1
        return self.predictor

    def close(self, predictor: Predictor) -> None:
        assert predictor is self.predictor
        self.closed += 1
        predictor.close()


@attrs.define
class Given:
    """Images as a test gives them, each time that they are listed."""

    listings: list[list[Item]]
    place: Path
    is_quick_to_list: bool = True
    name: str = "given"

    def __iter__(self) -> Iterator[Item]:
        listing = self.listings.pop(0) if len(self.listings) > 1 else self.listings[0]
        return iter(listing)


def item_of_bytes(key: str, path: Path) -> Item:
    """Make an item that has no file of its own."""
    return Item(key=key, content=BytesContent(key, path.read_bytes()))


def plan_of(folder: Path, **fields: Any) -> CaptionPlan:
    """Plan to caption a folder, with caption files beside its images unless *fields* say more."""
    defaults: dict[str, Any] = {"source": FolderImages(folder), "prompts": WHAT}
    if "tables" not in fields:
        defaults["sidecars"] = Sidecars()
    return CaptionPlan(**defaults | fields)


def caption(
    folder: Path, model: Recorder | Predictor | JobModel | None = None, **fields: Any
) -> JobReport:
    """Caption a folder."""
    asked: Any = EchoPredictor() if model is None else model
    if isinstance(asked, Recorder):
        asked = asked.predictor
    stop = fields.pop("stop", None)
    progress = fields.pop("progress", lambda _progress: None)
    return caption_images(plan_of(folder, **fields), asked, stop=stop, progress=progress)


def captions(folder: Path) -> dict[str, str]:
    """Read the caption files of a folder, by the paths of their names without their endings."""
    return {
        path.relative_to(folder).with_suffix("").as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*.txt"))
    }


def opened_journal(place: Path) -> Journal:
    """Look into the journal of a job."""
    return Journal(journal_of(place), read_only=True)
