"""The command ``music`` and its sub-commands."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from vlmcore._optional import optional_dependency
from vlmcore._whole_files import what_failed
from vlmcore.cli.commands import ExitCode, Terminal, add_parser, read_bytes
from vlmcore.errors import ContractError, EndpointError, MusicDownloadError
from vlmcore_audio.cli._keeping import keep, keep_address
from vlmcore_audio.cli._progress import ProgressLine
from vlmcore_audio.clips import MusicClip
from vlmcore_audio.containers import SAMPLE_RATES_HZ, Container
from vlmcore_audio.minimax.client import MiniMaxMusic
from vlmcore_audio.minimax.models import MODELS
from vlmcore_audio.minimax.regions import Region
from vlmcore_audio.minimax.wire import Delivery
from vlmcore_audio.music import AudioFormat, MusicRequest, Reference

__all__ = ["add_command"]

_CONTAINERS = {
    ".mp3": Container.MP3,
    ".wav": Container.WAV,
    ".flac": Container.WAV,
    ".ogg": Container.WAV,
}
_TEXT_BYTES = 0x10000
_SHOWN = 200  # characters of a name
_OPTIONS = {  # where the words of a request come from
    "prompt": "--prompt",
    "lyrics": "--lyrics",
    "model": "--model",
    "seed": "--seed",
    "timeout_s": "--timeout",
    "bitrate_kbps": "--bitrate",
    "reference": "--file",
    "file": "--file",
    "url": "--url",
    "feature_id": "--feature",
    "aigc_watermark": "--watermark",
}
_EPILOG = """\
The key is taken from the environment variable MINIMAX_API_KEY, and is no option. A request costs
money; one that has begun to send audio is not made again. The file is written whole, or not at all;
if it cannot be written, the music is kept in another one, and where is told.
"""


def add_command(commands: Any) -> None:
    """Add the command to *commands*, as `vlmcore.cli` says."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "music",
        help="make music, and covers of recordings",
        description="Make music, and covers of recordings, with MiniMax.",
        allow_abbrev=False,
    )
    inner = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    generate = _add(inner, "generate", "make a piece of music")
    sung = _add_lyrics(generate, "what is sung, one of", required=True)
    sung.add_argument(
        "--lyrics-optimizer", action="store_true", help="let the service write the lyrics"
    )
    sung.add_argument("--instrumental", action="store_true", help="nothing is sung")
    cover = _add(inner, "cover", "make a cover of a recording of 6 s to 6 min")
    _add_lyrics(cover, "what is sung, one of")
    recording = cover.add_argument_group("recording, one of")
    group = recording.add_mutually_exclusive_group(required=True)
    group.add_argument("--file", metavar="AUDIO", help="a file of 50 MB at most")
    group.add_argument("--url", help="an https address, which the service fetches")
    group.add_argument("--feature", metavar="ID", help="what the service calls it already")
    cover.add_argument("--seed", type=int, metavar="N", help="the same makes much the same")


def _add(commands: Any, name: str, summary: str) -> argparse.ArgumentParser:
    parser = add_parser(
        commands,
        name,
        work=_work,
        summary=summary,
        epilog=_EPILOG,
        words=("MINIMAX_API_KEY",),
        done="the file is written",
        incomplete="there is no music, or the file cannot be written",
        interrupted="stopped with Ctrl-C; nothing was written",
    )
    parser.add_argument("--prompt", default="", help="what it should sound like")
    parser.add_argument(
        "--output", "-o", required=True, metavar="OUT", help=".mp3, .wav, .flac or .ogg"
    )
    parser.add_argument("--model", metavar="NAME", help=f"one of {', '.join(MODELS)}")
    parser.add_argument(
        "--region", choices=[each.value for each in Region], default=Region.GLOBAL_EN.value
    )
    parser.add_argument(
        "--delivery",
        choices=[each.value for each in Delivery],
        default=Delivery.STREAM.value,
        help="how the audio comes",
    )
    parser.add_argument(
        "--sample-rate", type=int, choices=SAMPLE_RATES_HZ, default=SAMPLE_RATES_HZ[-1]
    )
    parser.add_argument("--bitrate", type=int, metavar="KBPS", help="of MP3: 32, 64, 128 or 256")
    parser.add_argument("--channels", type=int, choices=(1, 2), default=2)
    parser.add_argument("--watermark", action="store_true", help="mark it, in cn_zh")
    parser.add_argument(
        "--timeout", type=float, default=600.0, metavar="S", help="1 to 1800 s; 600 if not given"
    )
    parser.add_argument("--quiet", "-q", action="store_true", help="no notes, only complaints")
    return parser


def _add_lyrics(parser: argparse.ArgumentParser, title: str, *, required: bool = False) -> Any:
    group = parser.add_argument_group(title).add_mutually_exclusive_group(required=required)
    group.add_argument("--lyrics", type=_words, metavar="WORDS", help="the words")
    group.add_argument("--lyrics-file", metavar="TEXT", help="the same, in a file, or '-'")
    return group


def _words(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("got none, expected some")
    return text


def _work(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    """Make it, and write it; what is wrong with an option is told before money is spent."""
    try:
        request = _request(arguments)
        client = MiniMaxMusic(
            region=Region(arguments.region),
            delivery=Delivery(arguments.delivery),
            timeout_s=arguments.timeout,
            aigc_watermark=arguments.watermark,
        )
        steps = client.stream(request)
    except ContractError as error:
        raise ContractError(_OPTIONS.get(error.field, error.field), error.problem) from None
    except EndpointError as error:
        raise ContractError("--url", str(error)) from None
    try:
        with client, ProgressLine(terminal, quiet=arguments.quiet) as line:
            clip = next(each for each in steps if isinstance(each, MusicClip) or line.show(each))
    except MusicDownloadError as error:
        return keep_address(error, arguments.output, terminal)
    assert isinstance(clip, MusicClip)
    return keep(clip, arguments.output, terminal)


def _request(arguments: argparse.Namespace) -> MusicRequest:
    """Read the command line; whatever cannot be written later is refused before money is spent."""
    container = _CONTAINERS.get(Path(arguments.output).suffix.lower())
    if container is None:
        raise ContractError("--output", f"expected a name that ends in {', '.join(_CONTAINERS)}")
    _require_writable(Path(arguments.output))
    with optional_dependency("audio", "soundfile"):
        from vlmcore_audio import _soundfile  # noqa: F401, PLC0415 - it is needed at the end
    lyrics = arguments.lyrics or ""
    if arguments.lyrics_file is not None:
        try:
            lyrics = read_bytes(arguments.lyrics_file, most=_TEXT_BYTES).decode()
        except UnicodeDecodeError:
            raise ContractError("--lyrics-file", "is not in UTF-8") from None
        if not lyrics.strip():
            raise ContractError("--lyrics-file", "got no words, expected some")
    audio = AudioFormat(
        container=container,
        sample_rate_hz=arguments.sample_rate,
        bitrate_kbps=arguments.bitrate,
        channels=arguments.channels,
    )
    common = {
        "prompt": arguments.prompt,
        "lyrics": lyrics,
        "model": arguments.model,
        "audio": audio,
    }
    if not hasattr(arguments, "feature"):
        return MusicRequest(
            lyrics_optimizer=arguments.lyrics_optimizer,
            is_instrumental=arguments.instrumental,
            **common,
        )
    reference = Reference(file=arguments.file, url=arguments.url, feature_id=arguments.feature)
    return MusicRequest(reference=reference, seed=arguments.seed, **common)


def _require_writable(output: Path) -> None:
    shown = repr(str(output)[:_SHOWN])
    try:
        is_lost = output.is_dir() or not output.parent.is_dir()
        is_other = not is_lost and output.exists() and not output.is_file()
    except OSError as error:  # its name is too long, as for one
        raise ContractError("--output", f"{shown}: {what_failed(error)}") from None
    if is_lost or "\0" in str(output):
        raise ContractError("--output", f"{shown} is a folder, or in none")
    if is_other or not os.access(output.parent, os.W_OK):
        raise ContractError("--output", f"{shown} cannot be written")
