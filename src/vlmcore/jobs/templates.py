"""What is made of the answers of a model before they are written, and prompts for one image."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence

import attrs

from vlmcore._arguments import require_switch, shown
from vlmcore._arrays import require_count, require_member
from vlmcore.errors import ContractError
from vlmcore.jobs._cleaning import collapsed, cut_at_sentence, cut_at_word, plain, stripped
from vlmcore.jobs._fields import Fields, parse, places_of, require_known, require_plain

__all__ = ["CaptionTemplate", "Cut", "PromptTemplate"]

_CAPTION = "caption"
_PLACES = ("stem", "folder")
_SIZES = ("width", "height")


class Cut(enum.Enum):
    """Where a caption that is too long is cut."""

    WORD = "word"  # after the last word that fits
    SENTENCE = "sentence"  # after the last sentence that fits; where none does, after a word


def _texts(value: Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


@attrs.frozen(kw_only=True)
class CaptionTemplate:
    """
    What is made of an answer before it is written as a caption.

    First each answer is cleaned, in this order until nothing changes: white space, fences, quotes,
    phrases, the full stop at its end. Then the captions are put together, by `text` or else one
    after the other with `prefix` before and `suffix` behind. At last comes the trigger word.

    Attributes:
        prefix: What stands before the caption, with its own space.
        suffix: What stands behind it.
        text: The whole instead, with fields in braces: ``{caption}`` for the answer to the only
            prompt, or the name of one of several, and ``{stem}`` and ``{folder}`` for what the
            image is called; ``{{`` is a brace. ``None`` for prefix and suffix.
        trigger: The word, or words, that training is to tie to what is seen. It is put first, with
            a comma, unless it is in the caption already, in whatever case.
        strip_phrases: Phrases that a caption is not to begin with, as ``"The image shows"``, in any
            case; what joins them to the rest, as a colon, goes with them.
        strip_quotes: Whether quotes are taken off that are around a whole caption.
        strip_fences: Whether the fences are taken off that Markdown has around code.
        strip_full_stop: Whether a full stop is taken off at the end; an ellipsis stays.
        keep_lines: Whether line ends stay. Other white space is always made one space.
        max_characters: How many characters of each answer are kept; ``None`` keeps all.
        cut: Where it is cut then.

    Raises:
        ContractError: If a field is not as described.

    Example:
        >>> template = CaptionTemplate(trigger="ohwx cat", strip_phrases=["The image shows"])
        >>> template.render({"caption": '"The image shows a cat on a mat."'}, key="a.jpg")
        'ohwx cat, a cat on a mat.'
    """

    prefix: str = ""
    suffix: str = ""
    text: str | None = None
    trigger: str = ""
    strip_phrases: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    strip_quotes: bool = True
    strip_fences: bool = True
    strip_full_stop: bool = False
    keep_lines: bool = False
    max_characters: int | None = None
    cut: Cut = Cut.WORD
    _fields: Fields | None = attrs.field(init=False, repr=False, eq=False, default=None)

    def __attrs_post_init__(self) -> None:
        require_plain("prefix", self.prefix)
        require_plain("suffix", self.suffix)
        require_plain("trigger", self.trigger)
        for phrase in self.strip_phrases:
            require_plain("strip_phrases", phrase)
            if not phrase.strip():
                raise ContractError("strip_phrases", f"got {shown(phrase)}, expected words")
        if self.trigger != " ".join(self.trigger.split()):
            raise ContractError("trigger", f"got {shown(self.trigger)}, expected words on one line")
        require_switch(
            strip_quotes=self.strip_quotes,
            strip_fences=self.strip_fences,
            strip_full_stop=self.strip_full_stop,
            keep_lines=self.keep_lines,
        )
        require_member(Cut, cut=self.cut)
        if self.max_characters is not None:
            require_count(max_characters=self.max_characters)
        if self.text is not None:
            if self.prefix or self.suffix:
                problem = "got one beside prefix or suffix, expected these to be in the text"
                raise ContractError("text", problem)
            object.__setattr__(self, "_fields", parse("text", self.text))

    def require_names(self, names: Sequence[str]) -> None:
        """
        Require the text to have no field but those of prompts of these names.

        Raises:
            ContractError: If it has others; or none of any prompt, which would be lost.
        """
        for name in names:
            if name in _PLACES:
                raise ContractError("name", f"got {name!r}, expected another: it is a field itself")
        if self._fields is None:
            return
        captions = [_CAPTION] if len(names) == 1 and _CAPTION not in names else []
        require_known("text", self._fields, [*captions, *names, *_PLACES])
        if not {*captions, *names} & {*self._fields.names}:
            there = ", ".join(f"{{{each}}}" for each in [*captions, *names])
            raise ContractError("text", f"got no caption in it, expected one of {there}")

    def clean(self, answer: str) -> str:
        """
        Take off an answer what is no caption; doing it again changes nothing.

        Returns:
            Characters that can be written to any text file; line ends only where they are kept.
        """
        caption = self._stripped(plain(answer))
        if self.max_characters is not None and len(caption) > self.max_characters:
            cut = cut_at_sentence if self.cut is Cut.SENTENCE else cut_at_word
            caption = self._stripped(cut(caption, self.max_characters))
        return caption

    def render(self, answers: Mapping[str, str], *, key: str, separator: str = "\n") -> str:
        """
        Make the caption of an image from the answers about it.

        Args:
            answers: What the model said, by the names of the prompts.
            key: What the image is called, as in `vlmcore.jobs.items.Item`.
            separator: What stands between several captions where there is no text.
        """
        captions = {name: self.clean(answer) for name, answer in answers.items()}
        if self._fields is None:
            body = separator.join(caption for caption in captions.values() if caption)
            whole = f"{self.prefix}{body}{self.suffix}"
        else:
            only = next(iter(captions.values())) if len(captions) == 1 else ""
            whole = self._fields.render({_CAPTION: only} | places_of(key) | captions)
        return self._with_trigger(whole.strip())

    def _stripped(self, text: str) -> str:
        text = stripped(
            text,
            phrases=self.strip_phrases,
            fences=self.strip_fences,
            quotes=self.strip_quotes,
            full_stop=self.strip_full_stop,
        )
        return collapsed(text, keep_lines=self.keep_lines)

    def _with_trigger(self, caption: str) -> str:
        if not self.trigger or not caption:
            return caption or self.trigger
        words = r"\s+".join(map(re.escape, self.trigger.split()))
        if re.search(rf"(?<!\w){words}(?!\w)", caption, re.IGNORECASE):
            return caption
        return f"{self.trigger}, {caption}"


@attrs.frozen(kw_only=True)
class PromptTemplate:
    """
    A prompt that says something of the image that it is about.

    Attributes:
        text: The prompt, with fields in braces: ``{stem}`` and ``{folder}`` for what the image is
            called, ``{width}`` and ``{height}`` for its size in pixels; ``{{`` is a brace.

    Raises:
        ContractError: If it has another field, or a brace that is alone.

    Example:
        >>> template = PromptTemplate(text="This is a photo of {folder}. Describe it.")
        >>> template.render(key="birds/robin/1.jpg", width_px=640, height_px=480)
        'This is a photo of robin. Describe it.'
    """

    text: str
    _fields: Fields = attrs.field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        fields = parse("text", self.text)
        require_known("text", fields, [*_PLACES, *_SIZES])
        object.__setattr__(self, "_fields", fields)

    @property
    def is_fixed(self) -> bool:
        """Whether it is the same for every image."""
        return not self._fields.names

    def render(self, *, key: str, width_px: int, height_px: int) -> str:
        """
        Make the prompt for one image.

        Args:
            key: What the image is called, as in `vlmcore.jobs.items.Item`.
            width_px: Its width.
            height_px: Its height.
        """
        sizes = {"width": str(width_px), "height": str(height_px)}
        return self._fields.render(places_of(key) | sizes)
