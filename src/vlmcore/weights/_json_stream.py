"""JSON of headers, member by member, so that no more than one of them is held as values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from json.scanner import make_scanner
from typing import Any

import numpy as np

from vlmcore.errors import ContractError
from vlmcore.limits import require_at_most

__all__ = ["JsonStream"]

_SPACE = re.compile(r"[ \t\n\r]*")
_KEY = 2048  # characters of a key, with its quotation marks and escapes
_ENTRY = 3072  # characters of what is said of one tensor
_NEXT_KEY = re.compile(r',[ \t\n\r]*"([\w.+/-]{1,1024})"[ \t\n\r]*:[ \t\n\r]*', re.ASCII)
_DIGITS = 20  # of the largest 64-bit number


class JsonStream:
    """
    Reads one JSON document from its start to its end, an object or a list at a time.

    A document of millions of empty lists takes fifty times its size once read: here only one
    member of *most* characters is read before the caller says whether it is what it should be.

    Args:
        data: The document in UTF-8.
        limit: The name of the limit of its size, for the error.
        max_bytes: That limit; characters that Python stores in two or four bytes count so.

    Raises:
        ContractError: From every method, at what is no JSON, a number other than whole ones of 64
            bits where little may come, a key that is there twice in one member, or a member that is
            too long.
        LimitExceededError: If the document is larger than *max_bytes*.
    """

    def __init__(self, data: bytes, *, limit: str, max_bytes: int) -> None:
        require_at_most(limit, len(data) * _width(data), max_bytes)
        try:
            self._text = data.decode()
        except UnicodeDecodeError:
            raise ContractError("JSON", "got text that is not UTF-8, expected UTF-8") from None
        self._at = _past_space(self._text, 0)

    def members(self) -> Iterator[str]:
        """
        Read the keys of the object that comes next; its caller reads each value in between.

        A key that is there twice is for the caller to find.
        """
        self._expect("{")
        if self._accept("}"):
            return
        yield self._key()
        while True:
            if plain := _NEXT_KEY.match(self._text, self._at):  # what nearly every one is
                self._at = plain.end()
                yield plain[1]
            elif self._accept(","):
                yield self._key()
            else:
                break
        self._expect("}")

    def elements(self) -> Iterator[None]:
        """Step through the list that comes next; its caller reads each value in between."""
        self._expect("[")
        if self._accept("]"):
            return
        while True:
            yield None
            if not self._accept(","):
                break
        self._expect("]")

    def run(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """
        Step through what follows a member or an element, as long as it is as *pattern* says.

        A match is a comma and one more member or element, which is read once the next is asked for:
        a caller that breaks off has it before it still.
        """
        while found := pattern.match(self._text, self._at):
            yield found
            self._at = found.end()
        self._at = _past_space(self._text, self._at)

    def value(self, *, most: int = _ENTRY) -> Any:
        """Read the value that comes next, of at most *most* characters."""
        window = self._text[self._at : self._at + most]
        try:
            found, length = (_scan if most <= _ENTRY else _scan_wide)(window, 0)
        except StopIteration as error:
            if error.value < most:
                raise self._unexpected("a value") from None
            raise self._too_long(most) from None
        except json.JSONDecodeError as error:
            if len(window) == most and (error.pos >= most - _DIGITS or "string" in error.msg):
                raise self._too_long(most) from None
            what, where = error.msg.removesuffix(" at"), self._at + error.pos
            raise ContractError("JSON", f"got {what} at character {where}") from None
        except RecursionError:
            raise ContractError("JSON", f"got values nested too deep at {self._at}") from None
        self._at = _past_space(self._text, self._at + length)
        return found

    def _key(self) -> str:
        if not self._text.startswith('"', self._at):
            raise self._unexpected("a key")
        key: str = self.value(most=_KEY)
        self._expect(":")
        return key

    def end(self) -> None:
        """Require that nothing follows."""
        if self._at != len(self._text):
            raise self._unexpected("the end")

    def _accept(self, mark: str) -> bool:
        if not self._text.startswith(mark, self._at):
            return False
        self._at = _past_space(self._text, self._at + 1)
        return True

    def _expect(self, mark: str) -> None:
        if not self._accept(mark):
            raise self._unexpected(f"{mark!r}")

    def _too_long(self, most: int) -> ContractError:
        return ContractError("JSON", f"got a member of more than {most} characters at {self._at}")

    def _unexpected(self, expected: str) -> ContractError:
        rest = self._text[self._at : self._at + 20]
        came = f"{rest!a}" if rest else "its end"
        return ContractError("JSON", f"got {came} at character {self._at}, expected {expected}")


def _width(data: bytes) -> int:
    """Say how many bytes Python takes for one character of the text that *data* holds."""
    largest = int(np.frombuffer(data, np.uint8).max(initial=0))
    return 4 if largest >= 0xF0 else 2 if largest >= 0xC4 else 1


def _past_space(text: str, at: int) -> int:
    if not text[at : at + 1].isspace():
        return at
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ContractError("JSON", f"got a key twice in {found!a:.80}, expected each key once")
    return found


def _no_number(digits: str) -> Any:
    raise ContractError("JSON", f"got {digits:.24}, expected whole numbers")


def _integer(digits: str) -> int:
    if len(digits) > _DIGITS:  # Python itself takes thousands, in quadratic time, or raises
        raise ContractError("JSON", f"got {digits:.24}, expected whole numbers of 64 bits")
    return int(digits)


_STRICT: dict[str, Any] = {
    "object_pairs_hook": _object,
    "parse_constant": _no_number,
}
_scanner: Any = make_scanner  # its stubs want another scanner, and it wants a decoder
_scan = _scanner(json.JSONDecoder(**_STRICT, parse_float=_no_number))
_scan_wide = _scanner(json.JSONDecoder(**_STRICT, parse_int=_integer))
