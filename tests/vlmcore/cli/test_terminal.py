"""What comes from outside is shown by a terminal, and does not control it."""

import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.cli._terminal import Terminal, visible

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@given(st.text(st.characters()))
def test_no_text_has_control_characters_left(text) -> None:
    """
    Whatever the text, lone surrogates included, it can be encoded and holds no C0 or C1 control.
    """
    assert not CONTROL.search(visible(text))
    assert "\n" not in visible(text, one_line=True)
    visible(text).encode("utf-8")


@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cc",))))
def test_text_without_control_characters_is_left_alone(text) -> None:
    """
    In any script.
    """
    assert text == visible(text)


@given(st.lists(st.text(st.characters(codec="utf-8"))))
def test_pieces_are_made_visible_as_the_whole_would_be(pieces) -> None:
    """
    How a stream was cut makes no difference: no sequence can hide in two pieces.
    """
    out = io.StringIO()
    terminal = Terminal(out=out, err=io.StringIO())
    for piece in pieces:
        terminal.write(piece)

    assert visible("".join(pieces)) == out.getvalue()


@pytest.mark.parametrize("name", ["a\n==> b <==", "a\u2028b", "\x9b2Ja"])
def test_a_heading_is_one_line(name) -> None:
    """
    A file name cannot forge a second heading, or an answer.
    """
    out = Screen()
    Terminal(out=out, err=io.StringIO()).heading(name)

    assert 1 == len(out.getvalue().splitlines())


def test_a_complaint_does_not_hang_behind_an_answer() -> None:
    """
    On a screen, where both streams meet, it begins a line of its own; a pipe gets no extra line.
    """
    screen, pipe, err = Screen(), io.StringIO(), io.StringIO()
    for out in (screen, pipe):
        terminal = Terminal(out=out, err=err)
        terminal.write("half an ans")
        terminal.complain("stopped")

    assert "half an ans\n" == screen.getvalue()
    assert "half an ans" == pipe.getvalue()
    assert "stopped\nstopped\n" == err.getvalue()


def test_quiet_drops_notes_and_keeps_complaints() -> None:
    """
    What has to be known is always told.
    """
    err = io.StringIO()
    terminal = Terminal(out=io.StringIO(), err=err, quiet=True)
    terminal.note("loading")
    terminal.complain("failed")

    assert "failed\n" == err.getvalue()


@given(st.text(st.characters()))
def test_documents_survive_any_text(text) -> None:
    """
    JSON in ASCII, one line, and the same text when it is read again.
    """
    out = io.StringIO()
    Terminal(out=out, err=io.StringIO()).document({"text": text})

    assert out.getvalue().isascii()
    assert 1 == out.getvalue().count("\n")
    assert not CONTROL.search(out.getvalue())
    assert text == json.loads(out.getvalue())["text"]


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_what_is_said_where_a_stream_was_closed_is_said_to_nobody(name: str, monkeypatch) -> None:
    """
    Python has no stream then, as after ``>&-``; a server that was started so goes on.
    """
    monkeypatch.setattr(f"sys.{name}", None)
    terminal = Terminal.standard()
    terminal.line("an answer")
    terminal.complain("a complaint")
    terminal.flush()
    terminal.abandon()
    assert not terminal.is_interactive
