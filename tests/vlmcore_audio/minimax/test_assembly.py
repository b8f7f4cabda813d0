"""Tests of what is joined to the whole audio, against the same rules written plainly."""

from __future__ import annotations

import json

from hypothesis import event as noted
from hypothesis import given
from hypothesis import strategies as st

from music_cases import encoded
from vlmcore._net.http_parts import Head
from vlmcore.errors import MusicIncompleteError, MusicProtocolError
from vlmcore.limits import MusicLimits
from vlmcore.secrets import redact
from vlmcore_audio.containers import Container
from vlmcore_audio.minimax._reading import AnswerReader

STREAM = Head(status=200, headers={"content-type": "text/event-stream"})
MAGIC = {
    Container.MP3: ("494433", "ffe2", "ffe3", "fff2", "fff3", "fffa", "fffb"),
    Container.WAV: (encoded("WAV")[:12].hex(),),
    Container.PCM: (),
}
PIECES = (*MAGIC[Container.MP3], *MAGIC[Container.WAV], "0", "00", "0000", "f", "ff", "fb", "ab1")
DIGITS = st.text("0123456789abcdefABCDEF", max_size=9) | st.sampled_from(PIECES)


def plainly_joined(
    fragments: list[str], last: str | None, told: int | None, container: Container
) -> str | None:
    """
    Join digits by the rules, one after the other; nothing where there is no whole audio.

    Fragments are appended. The last event is all of it if it has the size that is told; or else the
    last fragment if that makes the size; or else all of it if it starts with the fragments, or if
    both begin as a file does; or else the last fragment. What begins as a file does, and is shorter
    than the fragments, is the last fragment if it begins with a frame, and nothing otherwise. A
    whole has no half of a byte, and the size that is told.
    """
    joined = "".join(fragments).lower()
    if last is not None:
        last = last.lower()
        both_begin = last.startswith(MAGIC[container]) and joined.startswith(MAGIC[container])
        is_long = len(last) // 2 >= len(joined) // 2
        if told is not None and len(last) == 2 * told:
            joined = last
        elif told is not None and len(joined) + len(last) == 2 * told:
            joined += last
        elif len(last) % 2 == 0 and (last.startswith(joined) or (both_begin and is_long)):
            joined = last
        elif len(last) % 2 == 0 and both_begin and not last.startswith("ff"):
            return None
        else:
            joined += last
    is_whole = joined and len(joined) % 2 == 0 and told in (None, len(joined) // 2)
    return joined if is_whole else None


@st.composite
def lasts(draw: st.DrawFn, fragments: list[str]) -> str | None:
    """What the last event may bring: nothing, all, all with another header, or some more."""
    joined = "".join(fragments)
    all_of_it = st.just(joined) | DIGITS.map(lambda more: joined + more)
    changed = st.sampled_from(PIECES).map(lambda head: head + joined)
    return draw(st.none() | all_of_it | changed | DIGITS)


def written(draw: st.DrawFn, audio: str | None, status: int, told: int | None) -> bytes:
    """Write an event as the standard allows it: in one line of data or in two, after others."""
    fields = {"data": {"audio": audio, "status": status}, "base_resp": {"status_code": 0}}
    if told is not None:
        fields["extra_info"] = {"music_size": told}
    text = json.dumps(fields)
    if draw(st.booleans()):
        text = text.replace(", ", ",\ndata:", 1)
    before = draw(
        st.sampled_from(["", ": ping\n\n", "id: 7\nretry: 10\n", "event: audio\n", "x\n"])
    )
    return f"{before}data: {text}\n\n".encode()


@given(data=st.data(), container=st.sampled_from(Container))
def test_the_whole_is_what_the_rules_say_however_it_comes(
    data: st.DataObject, container: Container
) -> None:
    """
    Whatever the fragments are, and wherever they and the bytes of the stream are cut.
    """
    fragments = data.draw(st.lists(DIGITS, max_size=6))
    last = data.draw(lasts(fragments))
    sizes = {len("".join(fragments) + (last or "")) // 2, len(last or "") // 2}
    told = data.draw(st.none() | st.sampled_from(sorted(sizes)) | st.integers(0, 20))
    expected = plainly_joined(fragments, last, told, container)
    noted(f"a whole: {expected is not None}")

    text = b"".join(written(data.draw, each, 1, None) for each in fragments)
    text += written(data.draw, last, 2, told) + data.draw(
        st.sampled_from([b"", b"data: [DONE]\n\n"])
    )
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=9)))
    limits = MusicLimits(max_url_characters=data.draw(st.integers(1, 12)))
    reader = AnswerReader(container, limits=limits, redacted=redact)
    reader.take(STREAM)
    try:
        for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
            reader.take(text[begin:end])
        reader.finish()
        came = reader.assembly.whole().hex()
    except (MusicIncompleteError, MusicProtocolError):
        came = None
    assert expected == came
