"""Suites in files, with the images and videos beside them: all of it is checked before any use."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import attrs

from vlmcore._whole_files import what_failed
from vlmcore.contracts.faults import Faults
from vlmcore.errors import ContractError, DocumentError, MediaError, SuiteError
from vlmcore.lab.suite_documents import SUITE, suite_from_json, suite_from_toml
from vlmcore.lab.suites import Case, Suite
from vlmcore.limits import ImageLimits, SuiteLimits, VideoLimits, require_at_most
from vlmcore.media.headers import read_header, require_pixels
from vlmcore.media.sources import open_video_source, read_source

__all__ = ["read_suite", "require_media"]

_READERS = {".json": suite_from_json, ".toml": suite_from_toml}
_UTF8_MARK = b"\xef\xbb\xbf"  # Windows begins texts with it


def read_suite(
    path: str | os.PathLike[str],
    *,
    media_folder: Path | None = None,
    limits: SuiteLimits | None = None,
) -> Suite:
    """
    Read a suite, and see that each of its images and videos is there.

    Everything is checked that can be without asking a model: no request is paid for a typing error.

    Args:
        path: The file, which ends with ``.json`` or ``.toml``.
        media_folder: Where the images and videos lie; ``None`` for the folder of the file.
        limits: How much is read.

    Returns:
        The suite, with its folder.

    Raises:
        SuiteError: If the file cannot be read, or has faults, in it or in an image; all of them are
            listed.
        MissingDependencyError: If a case has a JSON Schema, and jsonschema is not installed; or if
            it is TOML, Python is older than 3.11, and tomli is not installed.

    Example:
        >>> read_suite("nope.toml")
        Traceback (most recent call last):
        ...
        vlmcore.errors.SuiteError: nope.toml: does not exist
    """
    file, name = Path(path), os.fspath(path)
    limits = limits or SuiteLimits()
    try:
        suite = _suite(file, name, limits)
        suite = attrs.evolve(suite, folder=file.parent if media_folder is None else media_folder)
        require_media(suite)
    except DocumentError as error:
        raise SuiteError(name, error.problem, error.faults) from None
    except ContractError as error:
        problem = error.problem if error.field == name else f"{error.field}: {error.problem}"
        raise SuiteError(name, problem) from None
    return suite


def _suite(file: Path, name: str, limits: SuiteLimits) -> Suite:
    reader = _READERS.get(file.suffix.lower())
    if reader is None:
        raise ContractError(name, "ends with neither .json nor .toml, expected a suite")
    return reader(_read(file, name, limits), limits=limits)


def _read(file: Path, name: str, limits: SuiteLimits) -> bytes:
    if "\0" in name:
        raise ContractError(name, "is no path: there is a null character in it")
    try:
        # Asked before it is opened: opening a named pipe waits for its writer.
        if not stat.S_ISREG(file.stat().st_mode):
            raise ContractError(name, "is no regular file, expected a suite")
        with file.open("rb") as opened:
            data = opened.read(limits.max_file_bytes + 1)
    except OSError as error:
        raise ContractError(name, what_failed(error)) from None
    require_at_most("max_file_bytes", len(data), limits.max_file_bytes)
    return data.removeprefix(_UTF8_MARK)


def require_media(suite: Suite) -> None:
    """
    Require that each image and video of a suite is there, and that images are what they say.

    Of an image everything but its pixels is looked at; of a video, that it is a file.

    Raises:
        DocumentError: If something is wrong with one; all that is wrong is listed.
        ContractError: If the suite has no folder.
    """
    faults = Faults(SUITE.name)
    seen: dict[tuple[str, bool], str] = {}
    for i, case in enumerate(suite.cases):
        key = (case.media, case.video is None)
        if key not in seen:
            seen[key] = next(_problems(suite.path_of(case), case), "")
        if seen[key]:
            faults.add(f"$.cases[{i}].{'image' if key[1] else 'video'}", seen[key])
    faults.raise_any()


def _problems(path: Path, case: Case) -> Iterator[str]:
    try:
        if case.video is not None:
            with open_video_source(path, limits=VideoLimits()):
                return
        encoded = read_source(path, limits=ImageLimits())
        header = read_header(encoded, limits=ImageLimits())
        require_pixels(header, name=encoded.name, limits=ImageLimits())
    except MediaError as error:
        yield f"{case.media!r} {error.problem}"
