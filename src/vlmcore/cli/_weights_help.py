"""What the help of ``vlmcore weights`` says below the options of each command."""

from __future__ import annotations

from vlmcore.cli._exit_codes import ExitCode, exit_codes_help

__all__ = ["INSPECT", "LOAD", "TUNE", "VERIFY", "WRITE"]

_PATH = """\
PATH is a FlashPack file, a file of safetensors, an index of several (*.safetensors.index.json), or
a folder that holds one of them. Everything that it says of itself is checked before it is believed.
"""
_CODES = (ExitCode.DONE, ExitCode.INCOMPLETE, ExitCode.USAGE, ExitCode.NO_PACKAGE)
_MEANINGS = {
    "incomplete": "a file cannot be read or written, or says what cannot be true",
    "interrupted": "stopped with Ctrl-C",
}
_WRITE_CODES = exit_codes_help(*_CODES, ExitCode.INTERRUPTED, done="it is written", **_MEANINGS)
_LOOK_CODES = exit_codes_help(
    *_CODES, ExitCode.INTERRUPTED, done="the files are as they should be", **_MEANINGS
)
_VERIFY_CODES = exit_codes_help(
    *_CODES,
    ExitCode.UNSAFE,
    ExitCode.INTERRUPTED,
    done="the weights are those of the manifest, as far as they were compared",
    unsafe="the weights are others than those of the manifest",
    **_MEANINGS,
)
WRITE = f"""\
{_PATH}
What was at TARGET is there until the new file is whole. Beside it a manifest is written: the
checksum of each tensor, the source with the SHA-256 of its files, and what made it. Nothing is
converted unless --dtype says so; whole numbers and float8 never are.

{_WRITE_CODES}
"""
INSPECT = f"{_PATH}\n{_LOOK_CODES}\n"
VERIFY = f"""\
{_PATH}
The manifest finds what happened by mistake, by the name of the tensor. Against somebody who would
forge both, compare the SHA-256 that it has of each file with one that you have from elsewhere.

{_VERIFY_CODES}
"""
LOAD = f"""\
{_PATH}
The weights are read as a program would have them, and let go of. What 'vlmcore weights tune' found
for files that lie there is used, unless an option says otherwise. Staging memory is a bound; where
the host has little memory, less is taken, and told.

{_LOOK_CODES}
"""
TUNE = f"""\
{_PATH}
Some ways to read are tried for some seconds, with pages of the file dropped from the page cache in
between. What is fastest is remembered for this machine and its file system.

{_LOOK_CODES}
"""
