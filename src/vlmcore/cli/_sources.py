"""The images that a command line names: paths, standard input, data URLs; opened one at a time."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import attrs

from vlmcore._arrays import UInt8Array
from vlmcore.errors import ContractError, MediaError
from vlmcore.limits import ImageLimits, PromptLimits, require_at_most
from vlmcore.media.images import load_image

__all__ = ["ImageSource", "Question", "questions_about"]

_STANDARD_INPUT = "-"
_MOST_URL_CHARACTERS = 48  # enough to see the type, and how the data begins


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
        return self.word

    def load(self) -> UInt8Array:
        """
        Read it as RGB pixels of shape ``[H, W, 3]``.

        Raises:
            MediaError: If it cannot be read as an image.
            MissingDependencyError: If what decodes images is not installed.
        """
        if self.word != _STANDARD_INPUT:
            return load_image(self.word, limits=ImageLimits())
        if sys.stdin is None or sys.stdin.isatty():
            raise MediaError(self.word, "nothing is piped into standard input")
        return load_image(sys.stdin.buffer, limits=ImageLimits())


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
        return ", ".join(source.name for source in self.sources)

    @property
    def source(self) -> str | list[str]:
        """What it is called in documents."""
        return [source.name for source in self.sources] if self.together else self.name


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
