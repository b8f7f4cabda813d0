"""The only place that writes to the screen: what comes from outside cannot control a terminal."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any, TextIO

__all__ = ["OutputError", "Terminal", "shortened", "visible"]

_LONGEST_MESSAGE = 1000  # characters, as for every text about an error that a person is shown

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_CONTROL_OR_BREAK = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def visible(text: str, *, one_line: bool = False) -> str:
    r"""
    Write control characters as their escapes, so that a terminal shows them and does not obey.

    An answer or a file name may hold sequences that move the cursor, retitle the window or answer
    in the user's name. New lines and tabs stay, unless the text has to be one line.

    Example:
        >>> print(visible("\x1b[2Jall\tgone\n", one_line=True))
        \x1b[2Jall\x09gone\x0a
    """
    pattern = _CONTROL_OR_BREAK if one_line else _CONTROL
    # A file name that is no UTF-8 has lone surrogates in it, which no stream can encode.
    whole = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return pattern.sub(lambda found: _escape(found[0]), whole)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def shortened(text: str, longest: int) -> str:
    """
    Cut *text* in the middle, if it is longer than *longest*: both ends tell what it is.

    Example:
        >>> shortened("a" * 20 + "b" * 20, 13)
        'aaaaa...bbbbb'
    """
    if len(text) <= longest:
        return text
    kept = (longest - 3) // 2
    return f"{text[:kept]}...{text[-kept:]}"


class OutputError(OSError):
    """Standard output cannot be written to, as on a disk that is full."""


class _Nowhere(io.StringIO):
    """Stands for a stream that was closed before Python started, which has none for it."""

    def write(self, text: str, /) -> int:
        return len(text)


class Terminal:
    """
    Standard output for answers, standard error for everything else.

    Args:
        out: Where answers go.
        err: Where notes and complaints go.
        quiet: Whether notes are left out; complaints never are.
    """

    def __init__(self, *, out: TextIO, err: TextIO, quiet: bool = False) -> None:
        self._out = out
        self._err = err
        self._quiet = quiet
        self._in_line = False  # the cursor stands behind text

    @classmethod
    def standard(cls, *, quiet: bool = False) -> Terminal:
        """Use the streams of this process."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                # A locale without a character must not end the command in the middle of an answer.
                stream.reconfigure(errors="backslashreplace")
        return cls(out=sys.stdout or _Nowhere(), err=sys.stderr or _Nowhere(), quiet=quiet)

    @property
    def is_interactive(self) -> bool:
        """Whether a person is watching the answers."""
        return self._out.isatty()

    def write(self, text: str) -> None:
        """Write a piece of an answer, at once."""
        if text:
            with _told_of_output():
                self._out.write(visible(text))
                self._out.flush()
            self._in_line = not text.endswith("\n")

    def line(self, text: str = "") -> None:
        """Write a line of text."""
        self.write(f"{text}\n")

    def heading(self, name: str) -> None:
        """Write a name above what follows, as `head` does; a name cannot forge a second one."""
        self.line(f"==> {visible(name, one_line=True)} <==")

    def end_line(self) -> None:
        """Begin a new line, unless one has just begun."""
        if self._in_line:
            self.write("\n")

    def document(self, document: Any, *, indent: int | None = None) -> None:
        """Write JSON, in ASCII: no locale, pipe or terminal can damage it or be damaged by it."""
        self.line(json.dumps(document, indent=indent))

    def note(self, text: str) -> None:
        """Tell what is nice to know, unless the user wants quiet."""
        if not self._quiet:
            self.complain(text)

    def complain(self, text: str) -> None:
        """Tell what has to be known, in one line."""
        if self.is_interactive:
            self.end_line()
        self._err.write(f"{shortened(visible(text, one_line=True), _LONGEST_MESSAGE)}\n")
        self._err.flush()

    def flush(self) -> None:
        """Hand over everything that was written."""
        with _told_of_output():
            self._out.flush()

    def abandon(self) -> None:
        """Write to nowhere from now on: nobody can read it, and the last flush must not fail."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, self._out.fileno())
        except io.UnsupportedOperation:
            pass  # not a stream of the operating system: nothing is flushed when Python ends
        finally:
            os.close(nowhere)


@contextlib.contextmanager
def _told_of_output() -> Iterator[None]:
    """Tell what standard output does from what any other file does."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error.errno, error.strerror) from error
