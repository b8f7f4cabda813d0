"""Tests of `vlmcore_audio.clips` and `vlmcore_audio.containers`."""

from __future__ import annotations

import io
import struct
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from music_cases import encoded, tone
from vlmcore.errors import ContractError, MediaError, MediaLimitError, VlmcoreError
from vlmcore.limits import MusicLimits
from vlmcore_audio._mpeg import measured_mpeg
from vlmcore_audio.clips import MusicClip
from vlmcore_audio.containers import Container


def clip_of(kind: str) -> MusicClip:
    return MusicClip(encoded=encoded(kind), container=Container[kind])


def spectral_distance(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    """How far the spectra of two signals are apart, as a part of the first."""
    size = min(len(one), len(other))
    a, b = (np.abs(np.fft.rfft(each[:size], axis=0)) for each in (one, other))
    return float(np.linalg.norm(a - b) / np.linalg.norm(a))


@pytest.mark.parametrize("kind", ["WAV", "PCM"])
def test_samples_are_those_that_were_encoded(kind: str) -> None:
    """
    Sixteen bits are kept exactly, as float32 of shape [samples, channels].
    """
    clip = clip_of(kind)

    exact = np.frombuffer(encoded(kind)[-4 * len(tone()) :], "<i2").reshape(-1, 2) / 0x8000
    assert exact.astype(np.float32).tolist() == clip.samples.tolist()
    assert (np.float32, 44_100, 2, 0.5) == (
        clip.samples.dtype,
        clip.sample_rate_hz,
        clip.channels,
        clip.duration_s,
    )


def test_mp3_sounds_as_what_was_encoded() -> None:
    """
    MP3 loses something, and not much of the spectrum of a chord.
    """
    assert spectral_distance(tone(), clip_of("MP3").samples) < 0.05


SECONDS = 10.0
TAG = b"ID3\4\0\0\0\4\0\0" + bytes(4 << 14)  # of 64 KiB, as a picture


@cache
def mp3(mode: str, rate_hz: int = 44_100) -> bytes:
    """MP3 that begins quietly, with the number of its frames in the first of them."""
    samples = tone(SECONDS, rate_hz=rate_hz)
    samples[: len(samples) // 5] = 0
    out = io.BytesIO()
    soundfile.write(out, samples, rate_hz, format="MP3", bitrate_mode=mode)
    return out.getvalue()


def unmeasured(mode: str, rate_hz: int = 44_100) -> bytes:
    """The same without that frame."""
    data = mp3(mode, rate_hz)
    begin = data[:2]
    return data[data.index(begin, max(data.find(b"Xing"), data.find(b"Info"))) :]


@pytest.mark.parametrize("rate_hz", [16_000, 24_000, 32_000, 44_100])
@pytest.mark.parametrize("mode", ["CONSTANT", "VARIABLE", "AVERAGE"])
@pytest.mark.parametrize(("before", "after"), [(b"", b""), (TAG, b""), (b"", b"TAG" + bytes(125))])
def test_mp3_that_does_not_say_how_long_it_is_is_decoded_to_its_end(
    mode: str, rate_hz: int, before: bytes, after: bytes, tmp_path: Path
) -> None:
    """
    Its size tells nothing where the bit rate varies, or a picture stands before it.
    """
    data = before + unmeasured(mode, rate_hz) + after
    clip = MusicClip(encoded=data, container=Container.MP3)
    assert SECONDS == pytest.approx(clip.duration_s, abs=0.2)
    assert len(clip.samples) == round(clip.duration_s * rate_hz)
    assert len(clip.samples) == soundfile.info(clip.save(tmp_path / "song.flac")).frames


@pytest.mark.parametrize("mode", ["CONSTANT", "VARIABLE"])
@pytest.mark.parametrize("make", [mp3, unmeasured])
def test_mp3_that_is_cut_lasts_as_long_as_what_is_there(mode: str, make: Any) -> None:
    """
    Wherever it is cut: its header, if it has one, promises more.
    """
    data = make(mode)
    for end in range(len(data) // 2, len(data) // 2 + 600, 37):
        clip = MusicClip(encoded=data[:end], container=Container.MP3)
        assert len(clip.samples) == round(clip.duration_s * 44_100)
        assert 4.0 < clip.duration_s < 7.0


@pytest.mark.parametrize(
    "junk", [b"\1" * 300, b"\1" * 3000, b"\xff" * 3000, b"ID3\4\0\0\0\0\x0f\0" + bytes(1920)]
)
def test_mp3_is_decoded_to_its_end_whatever_lies_between_its_frames(junk: bytes) -> None:
    """
    Text, a picture, half a frame: more than its decoder passes over by itself, and with bit rates
    that vary.
    """
    data = unmeasured("VARIABLE", 16_000)
    whole = MusicClip(encoded=data, container=Container.MP3)
    at = data.index(data[:2], len(data) // 2)
    for mixed in (data[:at] + junk + data[at:], data + junk):
        clip = MusicClip(encoded=mixed, container=Container.MP3)
        assert whole.duration_s == pytest.approx(clip.duration_s, abs=0.08)
        assert len(clip.samples) == round(clip.duration_s * 16_000)


@pytest.mark.parametrize("told", [0, 1, 10, 10**6, None])
@pytest.mark.parametrize("mode", ["CONSTANT", "VARIABLE"])
def test_mp3_that_lies_about_its_length_is_decoded_to_its_end(told: int | None, mode: str) -> None:
    """
    The number of its frames is that of the frames that are there; it may be left out, too.
    """
    data = bytearray(mp3(mode, 16_000))
    at = max(data.find(b"Xing"), data.find(b"Info"))
    data[at + 8 : at + 12] = (told or 0).to_bytes(4, "big")
    data[at + 7] &= 0xFE if told is None else 0xFF
    clip = MusicClip(encoded=bytes(data), container=Container.MP3)
    assert SECONDS == pytest.approx(clip.duration_s, abs=0.2)
    assert len(clip.samples) == round(clip.duration_s * 16_000)


def test_mp3_that_tells_its_length_as_another_encoder_does_is_decoded_to_its_end() -> None:
    """
    VBRI: its number of frames stands elsewhere.
    """
    data = mp3("CONSTANT")
    at = data.index(b"Info") if b"Info" in data else data.index(b"Xing")
    frames = int.from_bytes(data[at + 8 : at + 12], "big")
    for told in (1, frames):
        count = b"VBRI" + bytes(10) + told.to_bytes(4, "big")
        clip = MusicClip(
            encoded=data[:at] + count + bytes(100) + data[at + len(count) + 100 :],
            container=Container.MP3,
        )
        assert SECONDS == pytest.approx(clip.duration_s, abs=0.2)


@pytest.mark.parametrize("make", [mp3, unmeasured])
def test_two_songs_in_one_file_are_decoded_one_after_the_other(make: Any) -> None:
    """
    The first of them says how long it is, and not how long both are.
    """
    clip = MusicClip(encoded=make("VARIABLE") * 2, container=Container.MP3)
    assert 2 * SECONDS == pytest.approx(clip.duration_s, abs=0.3)
    assert len(clip.samples) == round(clip.duration_s * 44_100)


@pytest.mark.parametrize("make", [mp3, unmeasured])
def test_an_empty_tag_is_not_in_the_way(make: Any) -> None:
    """
    Its decoder takes such a file for no MP3 at all.
    """
    clip = MusicClip(encoded=b"ID3\4\0\0\0\0\0\0" + make("VARIABLE"), container=Container.MP3)
    assert SECONDS == pytest.approx(clip.duration_s, abs=0.2)


def test_mp3_of_free_format_is_decoded_to_its_end() -> None:
    """
    Its frames do not say how long they are; all are equally long.
    """
    data = bytearray(encoded("MP3", np.zeros((5 * 32_000, 2)), 32_000))
    head = data[-144:-140]
    del data[: data.index(head)]
    for at in range(0, len(data), 144):
        assert head == data[at : at + 4]
        data[at + 2] &= 0x0F
    clip = MusicClip(encoded=bytes(data), container=Container.MP3)
    assert clip.duration_s == pytest.approx(5.0, abs=0.2)
    assert len(clip.samples) == round(clip.duration_s * 32_000)


@pytest.mark.parametrize("rate_hz", [8_000, 11_025, 12_000])
def test_mp3_of_low_rates_is_decoded_to_its_end(rate_hz: int) -> None:
    """
    MPEG 2.5, as telephones record.
    """
    data = unmeasured("VARIABLE", rate_hz)
    clip = MusicClip(encoded=data, container=Container.MP3)
    assert b"\xff\xe3" == data[:2]
    assert SECONDS == pytest.approx(clip.duration_s, abs=0.4)
    assert len(clip.samples) == round(clip.duration_s * rate_hz)


def test_heads_without_their_frames_do_not_make_decoding_slow() -> None:
    """
    A search for the next frame is given up; so many bytes would take minutes otherwise.
    """
    data = unmeasured("CONSTANT") + b"\xff\xfb\x90\0" * 2_000_000
    clip = MusicClip(encoded=data, container=Container.MP3)
    assert SECONDS == pytest.approx(clip.duration_s, abs=0.2)


def test_mp3_is_decoded_to_its_end_however_often_something_lies_between_its_frames() -> None:
    """
    As names of songs, which radio stations put there for the whole day.
    """
    data = encoded("MP3", np.zeros((5 * 32_000, 2)), 32_000)
    words = b"StreamTitle='a';".ljust(33, b"\0")
    begin, size = data.index(data[-144:-140]), 3 * 144
    mixed = b"".join(data[at : at + size] + words for at in range(begin, len(data), size))
    clip = MusicClip(encoded=mixed * 30, container=Container.MP3)
    assert clip.duration_s == pytest.approx(30 * 5.0, rel=0.03)


def test_tags_without_end_do_not_make_decoding_slow() -> None:
    """
    They are passed over up to a thousand: who writes more has nothing to play.
    """
    tag, song = b"ID3\4\0\0\0\0\0\0", unmeasured("CONSTANT", 16_000)
    assert measured_mpeg(song) == measured_mpeg(tag * 1000 + song)
    assert tag * 1001 + song == measured_mpeg(tag * 1001 + song)


@pytest.mark.parametrize("limit", [1_000, 3_000_000])
def test_mp3_that_does_not_say_how_long_it_is_is_decoded_up_to_the_limit(limit: int) -> None:
    """
    The limit is that of what is decoded, and not of what somebody guesses.
    """
    limits = MusicLimits(max_decoded_bytes=limit)
    clip = MusicClip(encoded=unmeasured("VARIABLE"), container=Container.MP3, limits=limits)
    for look in (lambda: clip.samples, lambda: clip.duration_s):
        with pytest.raises(MediaLimitError, match="max_decoded_bytes"):
            look()


@pytest.mark.parametrize("data", [b"\xff\xfb\x90" + bytes(4000), b"\xff\xfb", b"ID3" + bytes(999)])
def test_what_cannot_be_decoded_is_named_and_no_object_of_python(data: bytes) -> None:
    """
    By what it is to the caller.
    """
    with pytest.raises(MediaError, match=r"^music: it cannot be decoded: [^<]+$"):
        MusicClip(encoded=data, container=Container.MP3).samples  # noqa: B018 - it fails


def test_samples_cannot_be_written_to() -> None:
    """
    Whoever shares a clip cannot change it for the others.
    """
    with pytest.raises(ValueError, match="read-only"):
        clip_of("WAV").samples[0, 0] = 1.0


def test_the_waveform_has_channels_before_samples() -> None:
    """
    It is what audio nodes of ComfyUI take.
    """
    assert (1, 2, len(tone())) == clip_of("PCM").waveform.shape


def test_the_peak_is_that_of_the_loudest_sample() -> None:
    """
    Also where that is below zero.
    """
    loud = struct.pack("<4h", 0, 100, -16384, 300)
    assert MusicClip(encoded=loud, container=Container.PCM).peak == 0.5


@pytest.mark.parametrize("suffix", ["wav", "flac", "ogg", "mp3", "WAV"])
@pytest.mark.parametrize("kind", ["MP3", "WAV", "PCM"])
def test_a_saved_file_plays_what_the_clip_is(kind: str, suffix: str, tmp_path: Path) -> None:
    """
    In whichever container; nothing is left beside it.
    """
    path = clip_of(kind).save(tmp_path / f"song.{suffix}")

    samples, rate_hz = soundfile.read(path)
    assert rate_hz == 44_100
    assert spectral_distance(tone(), samples) < 0.1
    assert [path] == list(tmp_path.iterdir())


def test_what_came_is_saved_as_it_is(tmp_path: Path) -> None:
    """
    Encoding it anew would lose something.
    """
    assert clip_of("MP3").save(tmp_path / "song.mp3").read_bytes() == encoded("MP3")


@pytest.mark.parametrize("name", ["song.exe", "song", ".mp3", "no/such/folder/song.mp3"])
def test_a_file_that_cannot_be_written_is_told(name: str, tmp_path: Path) -> None:
    """
    By its name, and nothing is written.
    """
    with pytest.raises(ContractError) as error:
        clip_of("MP3").save(tmp_path / name)
    assert str(tmp_path / name) == error.value.field
    assert [] == list(tmp_path.iterdir())


def test_a_notebook_plays_and_draws_a_clip() -> None:
    """
    PCM, which browsers do not play, gets a header.
    """
    shown = clip_of("PCM")._repr_html_()
    assert '<audio controls preload="none" src="data:audio/wav;base64,UklGR' in shown
    assert "<svg" in shown
    assert "0.5 s, 44100 Hz, stereo, peak 0." in shown


@pytest.mark.parametrize("frames", [1, 3, 481])
def test_a_short_clip_is_drawn_too(frames: int) -> None:
    """
    With fewer samples than the picture has columns, or hardly more.
    """
    clip = MusicClip(encoded=bytes(4 * frames), container=Container.PCM)
    assert clip.chart().horizon == 2 * min(frames, 480)


@pytest.mark.parametrize("rate_hz", [705_601, 1 << 31, 1 << 32, 10**30])
def test_a_rate_that_no_header_has_room_for_is_refused(rate_hz: int) -> None:
    """
    Of PCM, which somebody else tells: no error of Python later, when it is saved or shown.
    """
    with pytest.raises(ContractError, match=r"^pcm_sample_rate_hz: "):
        MusicClip(encoded=bytes(8), container=Container.PCM, pcm_sample_rate_hz=rate_hz)


@pytest.mark.parametrize("suffix", ["mp3", "wav", "flac", "ogg"])
@pytest.mark.parametrize("rate_hz", [1, 7, 400_000, 705_600])
def test_pcm_of_any_rate_is_saved_or_refused_without_an_object_of_python(
    rate_hz: int, suffix: str, tmp_path: Path
) -> None:
    """
    Encoders take few rates, and their words may name what is written to.
    """
    clip = MusicClip(encoded=bytes(80), container=Container.PCM, pcm_sample_rate_hz=rate_hz)
    said = ""
    try:
        clip.save(tmp_path / f"song.{suffix}")
    except MediaError as error:
        said = str(error)
    assert "<" not in said
    assert clip.duration_s == 20 / rate_hz


def test_a_wav_header_that_promises_more_than_there_is_is_refused() -> None:
    """
    The file was cut: half a song is not a song.
    """
    wav = encoded("WAV")
    with pytest.raises(MediaError, match=f"promises 88200 bytes of samples, {88_200 - 10} are"):
        MusicClip(encoded=wav[:-10], container=Container.WAV)


def test_a_wav_header_that_leaves_its_size_open_is_read_to_the_end() -> None:
    """
    Who streams a file does not know how long it gets.
    """
    wav = bytearray(encoded("WAV"))
    wav[40:44] = b"\xff" * 4
    assert len(MusicClip(encoded=bytes(wav), container=Container.WAV).samples) == len(tone())


def test_a_header_that_promises_hours_is_refused_before_decoding() -> None:
    """
    The size of what is decoded is known before memory is spent on it.
    """
    limits = MusicLimits(max_decoded_bytes=1000)
    for kind in ("WAV", "PCM", "MP3"):
        clip = MusicClip(encoded=encoded(kind), container=Container[kind], limits=limits)
        with pytest.raises(MediaLimitError, match="max_decoded_bytes"):
            clip.samples  # noqa: B018 - decoding is what fails


@pytest.mark.parametrize(
    ("data", "container"),
    [
        (b"", Container.MP3),
        (b"<html>", Container.MP3),
        (b"<html>", Container.WAV),
        (encoded("WAV"), Container.MP3),
        (encoded("WAV"), Container.PCM),
        (encoded("MP3"), Container.WAV),
        (b"RIFF\0\0\0\0WAVE", Container.WAV),
        (b"RIFF\0\0\0\0WAVEdata\4\0\0\0abcd", Container.WAV),
        (b"abc", Container.PCM),
        (b"abcdef", Container.PCM),
    ],
)
def test_bytes_that_are_no_such_audio_are_refused(data: bytes, container: Container) -> None:
    """
    By what they are, whatever was said about them.
    """
    with pytest.raises(MediaError):
        MusicClip(encoded=data, container=container)


@pytest.mark.parametrize("head", [b"ID3\4", b"\xff\xfb\x90", b"\xff\xf3\x90", b"\xff\xe3\x90"])
def test_mp3_is_known_by_its_tag_or_its_first_frame(head: bytes) -> None:
    """
    Of every version of MPEG.
    """
    assert Container.MP3.begins(head)


@given(head=st.sampled_from([b"", *(encoded(k)[:200] for k in ("WAV", "MP3"))]), more=st.binary())
def test_any_bytes_give_samples_or_an_error_of_ours(head: bytes, more: bytes) -> None:
    """
    What a service sends is decoded by a library in C: what it says is told in our words.
    """
    for container in Container:
        try:
            samples = MusicClip(encoded=head + more, container=container).samples
        except VlmcoreError:
            continue
        assert samples.dtype == np.float32
        assert samples.ndim == 2


def test_a_file_in_another_rate_and_in_mono_says_so() -> None:
    """
    What a file says counts, not what was asked for.
    """
    out = io.BytesIO()
    soundfile.write(out, tone()[:, 0], 16_000, format="WAV")
    clip = MusicClip(encoded=out.getvalue(), container=Container.WAV)
    assert (16_000, 1) == (clip.sample_rate_hz, clip.channels)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("name", ["song.mp3", "song.flac", "song.ogg"])
def test_samples_that_are_no_numbers_are_refused(value: float, name: str, tmp_path: Path) -> None:
    """
    A WAV of floats can hold them, and an encoder of MP3 ends the whole process for one.
    """
    samples = tone().astype(np.float32)
    samples[-1, 0] = value
    out = io.BytesIO()
    soundfile.write(out, samples, 44_100, format="WAV", subtype="FLOAT")
    clip = MusicClip(encoded=out.getvalue(), container=Container.WAV)
    with pytest.raises(MediaError, match="not finite"):
        clip.save(tmp_path / name)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["song.mp3", "song.flac", "song.ogg"])
def test_samples_beyond_one_are_clipped(name: str, tmp_path: Path) -> None:
    """
    However loud they are: the largest float too.
    """
    out = io.BytesIO()
    loud = np.full((4410, 2), np.finfo(np.float32).max, np.float32)
    soundfile.write(out, loud, 44_100, format="WAV", subtype="FLOAT")
    clip = MusicClip(encoded=out.getvalue(), container=Container.WAV)
    samples, _ = soundfile.read(clip.save(tmp_path / name))
    assert 0.9 < np.abs(samples[1000:3000]).mean() < 1.1


def test_a_file_is_written_beside_what_a_killed_process_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Numbers of processes come again, always the same ones in containers.
    """
    with monkeypatch.context() as patches:
        patches.setattr(Path, "replace", mock.Mock(side_effect=OSError))
        patches.setattr(Path, "unlink", mock.Mock())
        with pytest.raises(ContractError):
            clip_of("MP3").save(tmp_path / "song.mp3")
    (left,) = tmp_path.iterdir()
    saved = clip_of("MP3").save(tmp_path / "song.mp3")
    assert saved.read_bytes() == left.read_bytes() == encoded("MP3")


@pytest.mark.parametrize(
    ("frames", "channels", "rate_hz"),
    [(100, 2, 200_001), (100, 2, 2**31 - 1), (2000, 256, 44_100), (2000, 1024, 44_100)],
)
def test_rates_and_channels_that_end_the_encoder_are_refused(
    frames: int, channels: int, rate_hz: int, tmp_path: Path
) -> None:
    """
    A header says any number, and Vorbis reads beyond its tables for these.
    """
    out = io.BytesIO()
    soundfile.write(out, np.zeros((frames, channels)), rate_hz, format="WAV")
    clip = MusicClip(encoded=out.getvalue(), container=Container.WAV)
    assert (frames, channels) == clip.samples.shape
    with pytest.raises(MediaError, match="expected at most"):
        clip.save(tmp_path / "song.ogg")


@pytest.mark.parametrize("name", ["song.mp3", "song.flac", "song.ogg"])
def test_a_clip_without_samples_is_not_encoded(name: str, tmp_path: Path) -> None:
    """
    It would be a file of no bytes, which nothing plays.
    """
    out = io.BytesIO()
    soundfile.write(out, np.zeros((0, 2)), 44_100, format="WAV")
    clip = MusicClip(encoded=out.getvalue(), container=Container.WAV)
    with pytest.raises(MediaError, match="no samples"):
        clip.save(tmp_path / name)
    assert [] == list(tmp_path.iterdir())


def test_a_rate_of_one_does_not_make_decoding_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    How much is read at a time does not hang on what the header says.
    """
    out = io.BytesIO()
    soundfile.write(out, np.zeros((5000, 1)), 1, format="WAV")
    reads: list[int] = []
    read = soundfile.SoundFile.read

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        reads.append(1)
        return read(self, *args, **kwargs)

    monkeypatch.setattr(soundfile.SoundFile, "read", counted)
    assert len(MusicClip(encoded=out.getvalue(), container=Container.WAV).samples) == 5000
    assert len(reads) == 1


def test_a_notebook_shows_a_clip_whose_samples_are_no_numbers() -> None:
    """
    A browser may play it all the same; what is wrong stands where its waveform would be.
    """
    out = io.BytesIO()
    soundfile.write(out, np.full((99, 2), np.nan), 44_100, format="WAV", subtype="FLOAT")
    shown = MusicClip(encoded=out.getvalue(), container=Container.WAV)._repr_html_()
    assert "<audio" in shown
    assert "got samples that are not finite" in shown
    assert "<svg" not in shown


def test_a_notebook_shows_a_clip_that_cannot_be_decoded() -> None:
    """
    With the words of the decoder, as text.
    """
    shown = MusicClip(encoded=b"ID3<b>" + bytes(99), container=Container.MP3)._repr_html_()
    assert "cannot be decoded" in shown
    assert "<b>" not in shown


@pytest.mark.parametrize("samples", [0, 1, 7])
def test_a_notebook_shows_the_shortest_clips(samples: int) -> None:
    """
    Of which there is little to draw, or nothing.
    """
    out = io.BytesIO()
    soundfile.write(out, np.zeros((samples, 1)), 44_100, format="WAV")
    shown = MusicClip(encoded=out.getvalue(), container=Container.WAV)._repr_html_()
    assert "0.0 s, 44100 Hz, mono, peak 0.00" in shown
    assert ("<svg" in shown) == (samples > 0)
