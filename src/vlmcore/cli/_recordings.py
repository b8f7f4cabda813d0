"""Recorded action chunks: documents, answers of policies and arrays, read from files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from vlmcore.cli._files import STANDARD_INPUT, read_bytes, told_of
from vlmcore.cli._npy import is_npy, read_npy
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.documents import action_chunk_from_document
from vlmcore.contracts.json_text import read_json
from vlmcore.contracts.responses import NEVER_STREAMS, chunk_from_response
from vlmcore.errors import ContractError, PolicyError
from vlmcore.limits import ContractLimits, DocumentLimits
from vlmcore.rollout.episode_schemas import NOT_FINITE

__all__ = ["Recording", "RecordingFile", "read_document"]

_LIMITS = ContractLimits()
_MOST_TEXT = DocumentLimits().max_document_bytes
_MOST_BYTES = max(_MOST_TEXT, 8 * _LIMITS.max_horizon * _LIMITS.max_actions + 1024)  # and a header
_UTF8_MARK = b"\xef\xbb\xbf"  # Windows begins texts with it
_NO_TEXT = {
    b"PK\x03\x04": "is a zip or .npz archive, expected one array as numpy.save writes it",
    b"\xff\xfe": "is text in UTF-16, expected UTF-8",
    b"\xfe\xff": "is text in UTF-16, expected UTF-8",
}
# What stands for numbers that JSON does not know: null in many files, their names in our episodes.
_GAPS: dict[Any, float] = {None: math.nan, **NOT_FINITE}
_DOCUMENT_KEYS = {"source", "action_names", "actions"}


@attrs.frozen(eq=False)
class Recording:
    """
    A chunk that was read from a file.

    Attributes:
        chunk: The chunk; observed at 0 if the file does not say when.
        is_timed: Whether the file says when it was observed.
    """

    chunk: ActionChunk
    is_timed: bool


@attrs.frozen(kw_only=True)
class RecordingFile:
    """
    Reads one file, or standard input: an array of ``numpy.save``, or JSON.

    The JSON is a chunk document or the answer of a policy, which may be bare numbers.

    Attributes:
        word: The file as on the command line.
        names: What the dimensions are, in their order; ``None`` if only the file can say.
        reorder: Whether a document with these names in another order is put in this one.
        streams: The named parts of a policy's answer and how many dimensions each has, in the order
            of *names*; ``None`` if it names none.
        ignored: Keys of an answer that hold numbers and are no actions.
        allow_nan: Whether NaN, Infinity and null are taken for numbers in JSON, so that the gate
            finds them.
    """

    word: str
    names: tuple[str, ...] | None
    reorder: bool = False
    streams: Mapping[str, int] | None = None
    ignored: tuple[str, ...] = ()
    allow_nan: bool = False

    def read(self) -> Recording:
        """
        Read it.

        Raises:
            ContractError: If it cannot be read as a chunk; its field is *word*.
        """
        data = read_bytes(self.word, most=_MOST_BYTES)
        with told_of(self.word):
            if is_npy(data):
                return self._from_answer(read_npy(data))
            text = _text(self.word, data)
            try:
                return self._from_text(text, allow_nan=self.allow_nan)
            except (ContractError, PolicyError):
                self._explain(text)
                raise

    def _from_text(self, text: bytes, *, allow_nan: bool) -> Recording:
        value = read_json(text, allow_nan=allow_nan)
        if isinstance(value, dict) and ("schema" in value or value.keys() >= _DOCUMENT_KEYS):
            recording = _from_document(value, allow_nan=allow_nan)
            return attrs.evolve(recording, chunk=self._in_order(recording.chunk))
        return self._from_answer(_with_gaps(value) if allow_nan else value)

    def _from_answer(self, answer: Any) -> Recording:
        if self.names is None:
            raise ContractError(self.word, "does not name its dimensions: --embodiment does")
        name = "standard input" if self.word == STANDARD_INPUT else Path(self.word).name
        source = name if name.isprintable() and name.strip() else "recorded actions"
        chunk = chunk_from_response(
            answer,
            names=self.names,
            source=source,
            observed_at_s=0.0,
            streams=self.streams,
            ignored=self.ignored,
        )
        return Recording(chunk, is_timed=False)

    def _in_order(self, chunk: ActionChunk) -> ActionChunk:
        names = self.names
        if names is None or chunk.names == names:
            return chunk
        if set(chunk.names) != set(names):
            problem = "as the embodiment names them"
        elif not self.reorder:
            problem = "in this order: --reorder puts them in it"
        else:
            columns = [chunk.names.index(name) for name in names]
            # Its parts are no longer side by side.
            return attrs.evolve(chunk, values=chunk.values[:, columns], names=names, streams=())
        raise ContractError(
            "action_names", f"got {', '.join(chunk.names)}, expected {', '.join(names)}, {problem}"
        )

    def _explain(self, text: bytes) -> None:
        """Say what a person can do about a text that could not be read, where that is known."""
        first, _, rest = text.strip().partition(b"\n")
        if _is_object(first) and _is_object(rest.partition(b"\n")[0]):
            raise ContractError(
                self.word, "holds one JSON document a line, as episodes do; expected one chunk"
            )
        if self.allow_nan:
            return
        try:
            self._from_text(text, allow_nan=True)
        except (ContractError, PolicyError):
            return
        raise ContractError(
            self.word,
            "holds NaN, Infinity or null for numbers: --allow-nan lets the gate find them",
        )


def read_document(word: str) -> Any:
    """
    Read the JSON in the file *word*.

    Raises:
        ContractError: If it cannot be read; its field is *word*.
    """
    with told_of(word):
        return read_json(_text(word, read_bytes(word, most=_MOST_TEXT)))


def _from_document(value: dict[str, Any], *, allow_nan: bool) -> Recording:
    is_timed = "observed_at_s" in value
    actions = value.get("actions")
    if allow_nan:  # it is checked with zeros in the gaps, which are put back afterwards
        value = {**value, "actions": _without_gaps(actions)}
    chunk = action_chunk_from_document(value, observed_at_s=None if is_timed else 0.0)
    if allow_nan:
        chunk = attrs.evolve(chunk, values=_with_gaps(actions))
    return Recording(chunk, is_timed)


def _text(word: str, data: bytes) -> bytes:
    for start, problem in _NO_TEXT.items():
        if data.startswith(start):
            raise ContractError(word, problem)
    if b"\0" in data:
        raise ContractError(word, "is binary, expected JSON or one array of numpy.save")
    return data.removeprefix(_UTF8_MARK)


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(read_json(line, allow_nan=True), dict)
    except ContractError:
        return False


def _with_gaps(value: Any) -> Any:
    """Put NaN where null stands among numbers, and numbers where their names stand."""
    if isinstance(value, list):
        gaps = {} if any(isinstance(each, Mapping) for each in value) else _GAPS
        return [_with_gaps(gaps.get(each, each) if _is_gap(each) else each) for each in value]
    if isinstance(value, Mapping):
        return {
            key: each if key in NEVER_STREAMS else _with_gaps(each) for key, each in value.items()
        }
    return value


def _without_gaps(value: Any) -> Any:
    """Put zero where there is no finite number among numbers."""
    if isinstance(value, list):
        return [0.0 if _is_gap(each) else _without_gaps(each) for each in value]
    return 0.0 if isinstance(value, float) and not math.isfinite(value) else value


def _is_gap(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value in _GAPS)
