"""The nodes for sound: what they are given is sound, and what they keep overwrites nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from music_cases import (
    KEY,
    ScriptedMiniMax,
    document,
    encoded,
    event,
    says,
    scripted_minimax,
    streams,
)
from vlmcore.errors import ContractError, EndpointError, MusicError
from vlmcore_comfy.hosting import AloneHost
from vlmcore_comfy.nodes.audio import minimax_music, play_music, save_audio
from vlmcore_comfy.sounds import save_sound, sound_from

torch = pytest.importorskip("torch")
soundfile = pytest.importorskip("soundfile")

MUSIC: dict[str, Any] = {
    "region": "global_en",
    "model": "music-3.0",
    "prompt": "slow jazz",
    "lyrics": "",
    "stream": True,
    "output_format": "hex",
    "audio_format": "wav",
    "sample_rate": 44100,
    "bitrate": 256000,
    "lyrics_optimizer": False,
    "is_instrumental": True,
    "aigc_watermark": False,
}


class Keeping(AloneHost):
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.texts: list[str] = []

    def show_text(self, text: str, /) -> None:
        self.texts.append(text)

    @property
    def output_folder(self) -> Path:
        return self._folder / "output"

    @property
    def temporary_folder(self) -> Path:
        return self._folder / "temp"


def tone(*shape: int) -> Any:
    return np.sin(np.linspace(0, 300, int(np.prod(shape)), dtype=np.float32)).reshape(shape) * 0.5


@pytest.mark.parametrize(
    "waveform",
    [
        tone(800),
        tone(1, 800),
        tone(2, 400),
        tone(1, 2, 400),
        torch.from_numpy(tone(1, 2, 400)),
        {"waveform": torch.from_numpy(tone(1, 1, 800)), "sample_rate": 8000},
        (tone(800) * 0x7FFF).astype(np.int16),
    ],
)
@pytest.mark.parametrize("extension", ["wav", "flac"])
def test_sound_is_kept_in_every_form_that_nodes_give(
    waveform: Any, extension: str, tmp_path: Path
) -> None:
    """
    Of 16 bits, at its own rate; the page is told the file.
    """
    host = Keeping(tmp_path)
    shown = save_audio(waveform, 8000, extension, "take", comfyui=host).shown
    assert shown == {
        "audio": [{"filename": f"take_00001.{extension}", "subfolder": "", "type": "output"}]
    }
    samples, rate = soundfile.read(tmp_path / "output" / f"take_00001.{extension}")
    assert rate == 8000
    assert samples.size == 800
    assert np.abs(samples).max() == pytest.approx(0.5, abs=1e-3)


def test_no_file_is_written_over(tmp_path: Path) -> None:
    """
    Each takes the next number, also beside files of others.
    """
    host = Keeping(tmp_path)
    (tmp_path / "output").mkdir()
    (tmp_path / "output" / "take_00001.wav").write_bytes(b"mine")
    for _ in range(2):
        save_audio(tone(10), 8000, "wav", "take", comfyui=host)
    assert sorted(each.name for each in (tmp_path / "output").iterdir()) == [
        f"take_0000{number}.wav" for number in (1, 2, 3)
    ]
    assert (tmp_path / "output" / "take_00001.wav").read_bytes() == b"mine"


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "a\x00b", "x" * 101, "..", "C:x"])
def test_a_name_does_not_lead_out_of_the_output_folder(name: str, tmp_path: Path) -> None:
    """
    A graph comes from anywhere.
    """
    with pytest.raises(ContractError, match=r"filename: got .*, expected a name of letters"):
        save_audio(tone(10), 8000, "wav", name, comfyui=Keeping(tmp_path))
    assert not list(tmp_path.rglob("*.wav"))


def test_sound_of_16_bits_is_kept_to_the_bit(tmp_path: Path) -> None:
    """
    Music that is decoded and kept again loses nothing, however often.
    """
    samples = np.arange(-0x8000, 0x8000, dtype=np.int16)
    for given in (samples, samples.astype(np.float32) / 0x8000):
        path = save_sound(sound_from("waveforms", given, 8000), tmp_path, "all", "flac")
        kept, _ = soundfile.read(path, dtype="int16")
        assert np.array_equal(kept, samples)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int16])
def test_sound_comes_in_whatever_numbers_models_count_in(dtype: torch.dtype) -> None:
    """
    NumPy has no bfloat16.
    """
    given = torch.tensor([[[0.5, -0.25]]], dtype=torch.float64)
    given = (given * 0x8000).to(dtype) if dtype == torch.int16 else given.to(dtype)
    assert sound_from("waveforms", given, 8000).samples.tolist() == [[0.5], [-0.25]]


@pytest.mark.parametrize(
    ("waveform", "rate", "said"),
    [
        (np.zeros(0, np.float32), 8000, "got the shape [0]"),
        (np.zeros((2, 2, 4), np.float32), 8000, "got 2 sounds, expected one"),
        (np.zeros((3, 4), np.float32), 8000, "got 3 channels, expected 1 or 2"),
        (np.full(4, np.nan, np.float32), 8000, "NaN or infinite"),
        (np.zeros(4, np.int64), 8000, "got int64, expected floats, or int16"),
        (np.zeros(4, np.float32), None, "sample_rate: got None"),
        (np.zeros(4, np.float32), 0, "sample_rate: got 0"),
        (np.zeros(4, np.float32), True, "sample_rate: got True"),
        (torch.zeros(1, 4, 4, 3), 8000, "got the shape [1, 4, 4, 3]"),
        ({"waveform": None, "sample_rate": 1}, 8000, "got None, expected AUDIO"),
        (None, 8000, "got None, expected AUDIO"),
        (torch.zeros(4, device="meta"), 8000, "waveforms: has no plain values"),
        (torch.zeros(1, 2, 4).to_sparse(), 8000, "waveforms: has no plain values"),
        ("music", 8000, "got 'music', expected AUDIO"),
    ],
)
def test_what_is_no_sound_is_told(waveform: Any, rate: Any, said: str) -> None:
    """
    A socket that takes anything is given anything.
    """
    with pytest.raises(ContractError) as caught:
        sound_from("waveforms", waveform, rate)
    assert said in str(caught.value)


def test_sound_is_played_in_the_page_and_passed_on(tmp_path: Path) -> None:
    """
    From a file that the page is given, at its volume.
    """
    given = tone(1, 1, 80)
    result = play_music("always", 0.3, given, 8000, comfyui=Keeping(tmp_path))
    assert result.values == (given,)
    file = result.shown["audio"][0]
    assert (tmp_path / "temp" / file["filename"]).is_file()
    assert (file["type"], result.shown["mode"], result.shown["volume"]) == (
        "temp",
        ["always"],
        [0.3],
    )


@pytest.fixture
def minimax(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedMiniMax]:
    with scripted_minimax(tmp_path, monkeypatch) as server:
        yield server


@pytest.mark.parametrize("how", ["streamed", "whole"])
def test_music_is_made(minimax: ScriptedMiniMax, tmp_path: Path, how: str) -> None:
    """
    As ComfyUI's AUDIO, and as the waveform and the rate that graphs of old hold.
    """
    song = encoded("WAV")
    host = Keeping(tmp_path)
    is_streamed = how == "streamed"
    whole = document(song.hex())
    minimax.scripts = [streams(event(song.hex(), status=2)) if is_streamed else says(whole)]
    waveform, rate, audio = minimax_music(comfyui=host, **{**MUSIC, "stream": is_streamed})
    assert rate == audio["sample_rate"] == 44100
    assert waveform is audio["waveform"]
    assert waveform.ndim == 3
    assert float(waveform.abs().max()) > 0.1
    assert host.texts
    sent = json.loads(minimax.asked[0].body)
    assert (sent["model"], sent["is_instrumental"]) == ("music-3.0", True)
    assert KEY not in "".join(host.texts)


@pytest.mark.parametrize(
    ("changes", "kind", "said"),
    [
        ({"use_system_proxy": True}, ContractError, "use_system_proxy: is on"),
        ({"model": "music-cover"}, ContractError, "audio_url: is blank, expected a recording"),
        ({"is_instrumental": False}, ContractError, "lyrics: got none"),
        ({"lyrics": "la"}, ContractError, "lyrics: got lyrics and is_instrumental"),
        (
            {"audio_url": "http://127.0.0.1/a.mp3", "is_instrumental": False},
            EndpointError,
            "https://",
        ),
        ({"audio_base64": "!", "is_instrumental": False}, ContractError, "base64"),
        (
            {"audio_url": "https://a.example.com/x", "cover_feature_id": "x"},
            ContractError,
            "got url and feature_id",
        ),
    ],
)
def test_a_request_that_contradicts_itself_is_told(
    minimax: ScriptedMiniMax, changes: dict[str, Any], kind: Any, said: str
) -> None:
    """
    Before anything is sent, which would cost money.
    """
    with pytest.raises(kind, match=said):
        minimax_music(**{**MUSIC, **changes})
    assert minimax.asked == []


def test_a_service_that_refuses_is_told_without_the_key(minimax: ScriptedMiniMax) -> None:
    """
    Whatever it repeats.
    """
    minimax.scripts = [says(document(None, code=1004, message=f"wrong key {KEY}"))]
    with pytest.raises(MusicError) as caught:
        minimax_music(**MUSIC)
    assert KEY not in str(caught.value)
