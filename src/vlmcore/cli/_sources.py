"""The images and videos that a command line names; opened one at a time."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import attrs

from vlmcore._arrays import UInt8Array
from vlmcore.cli._terminal import shortened
from vlmcore.errors import ContractError, MediaError
from vlmcore.limits import ImageLimits, PromptLimits, require_at_most
from vlmcore.media.budgets import PixelBudget
from vlmcore.media.frames import load_frames
from vlmcore.media.images import image_info, load_image
from vlmcore.media.sampling import SampledVideo, sample_frames
from vlmcore.media.selections import FrameSampling
from vlmcore.media.sources import Encoded, read_source
from vlmcore.media.video import is_video, sample_video

__all__ = ["ImageSource", "OpenedImage", "Question", "Viewing", "questions_about"]

_STANDARD_INPUT = "-"
_MOST_URL_CHARACTERS = 48  # enough to see the type, and how the data begins
_MOST_NAME_CHARACTERS = 200
_MOST_NAMES = 3


@attrs.frozen(kw_only=True)
class Viewing:
    """
    What a model is shown of an image or a video.

    Attributes:
        sampling: How frames of a video are chosen.
        budget: How large a picture may be.
        moves: Whether animations are shown as videos, and not as their first picture.
    """

    sampling: FrameSampling
    budget: PixelBudget
    moves: bool


@attrs.frozen
class OpenedImage:
    """
    An image that was read.

    Attributes:
        pixels: RGB, uint8, shape ``[H, W, 3]``; of an animation the first picture.
        pictures: How many pictures the file holds.
    """

    pixels: UInt8Array
    pictures: int


@attrs.frozen
class ImageSource:
    """
    An image that was named on the command line and is not opened yet.

    Attributes:
        word: The word on the command line.
    """

    word: str

    @property
    def name(self) -> str:
        """What it is called in headings, messages and documents."""
        if self.word.lstrip()[:5].lower() == "data:" and len(self.word) > _MOST_URL_CHARACTERS:
            return f"{self.word[:_MOST_URL_CHARACTERS]}..."
        # A name that is no text in this locale is taken as the UTF-8 that it most likely is.
        text = self.word.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        return text if text.strip() else repr(text)

    def load(self) -> OpenedImage:
        """
        Read it and decode it.

        Raises:
            MediaError: If it cannot be read as an image.
            MissingDependencyError: If what decodes images is not installed.
        """
        return _image(self._read())

    def look(self, viewing: Viewing) -> OpenedImage | SampledVideo:
        """
        Read it, and decode what is shown of it.

        Raises:
            MediaError: If it cannot be read as an image, nor as a video.
            MissingDependencyError: If what decodes it is not installed.
        """
        if self.word != _STANDARD_INPUT and _is_video(self.word):
            # It is not held whole: it may be larger than any image.
            return sample_video(self.word, viewing.sampling, budget=viewing.budget)
        encoded = self._read()
        if _is_video(encoded.data):
            return sample_video(encoded, viewing.sampling, budget=viewing.budget)
        if viewing.moves and image_info(encoded).frames > 1:
            return _animation(encoded, viewing)
        opened = _image(encoded)
        return attrs.evolve(opened, pixels=viewing.budget.apply(opened.pixels))

    def _read(self) -> Encoded:
        if self.word != _STANDARD_INPUT:
            return read_source(self.word, limits=ImageLimits())
        if sys.stdin is None or sys.stdin.isatty():
            raise MediaError(self.word, "nothing is piped into standard input")
        return read_source(sys.stdin.buffer, limits=ImageLimits())


def _image(encoded: Encoded) -> OpenedImage:
    limits = ImageLimits()
    pixels = load_image(encoded, limits=limits)
    return OpenedImage(pixels, image_info(encoded, limits=limits).frames)


def _is_video(source: str | bytes) -> bool:
    try:
        return is_video(source)
    except MediaError:
        return False  # what cannot be read is told where it is read


def _animation(encoded: Encoded, viewing: Viewing) -> SampledVideo:
    frames = load_frames(encoded)
    video = sample_frames(
        frames.pixels, timestamps_s=frames.timestamps_s.tolist(), sampling=viewing.sampling
    )
    return attrs.evolve(video, pixels=viewing.budget.apply(video.pixels))


@attrs.frozen
class Question:
    """
    What goes into one prompt: one image, or all of them together.

    Attributes:
        sources: The images, not opened yet.
        together: Whether they were asked about together, even if there is only one.
    """

    sources: tuple[ImageSource, ...]
    together: bool

    @property
    def name(self) -> str:
        """What it is called in headings and messages."""
        first = self.sources if len(self.sources) <= _MOST_NAMES else self.sources[:_MOST_NAMES]
        names = [shortened(source.name, _MOST_NAME_CHARACTERS) for source in first]
        if len(first) < len(self.sources):
            names.append(f"and {len(self.sources) - len(first)} more")
        return ", ".join(names)

    @property
    def source(self) -> str | list[str]:
        """What it is called in documents."""
        return [source.name for source in self.sources] if self.together else self.sources[0].name


def questions_about(words: Sequence[str], *, together: bool) -> tuple[Question, ...]:
    """
    Read *words* as images, each of which is a question of its own unless they go *together*.

    Raises:
        ContractError: If standard input is named twice, or too many images go together.
    """
    if list(words).count(_STANDARD_INPUT) > 1:
        raise ContractError("IMAGE", "got '-' more than once: standard input can be read once")
    sources = tuple(ImageSource(word) for word in words)
    if together:
        require_at_most("--together", len(sources), PromptLimits().max_images)
        return (Question(sources, together=True),)
    return tuple(Question((source,), together=False) for source in sources)
