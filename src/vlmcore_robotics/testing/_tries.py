"""Requests that are wrong in one way each, made of one that is right."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import numpy as np

from vlmcore_robotics.testing import _bodies
from vlmcore_robotics.wire.frames import FrameKind, decode_frame, encode_frame
from vlmcore_robotics.wire.http_messages import ContentType
from vlmcore_robotics.wire.ndarrays import ArraySpelling

__all__ = ["TRIES", "Request", "Try"]

_PICKLE = b"\x80\x04N."  # of None: whoever unpickles it comes to no harm
_HUGE_PNG = (  # a header that says 60,000 x 60,000
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\xea\x60\x00\x00\xea\x60\x08\x02\x00\x00\x00"
    b"\x4e\x1a\x3c\x9b"
)

_Path = tuple[Any, ...]


@attrs.frozen(kw_only=True, eq=False)
class Request:
    """
    A request that is right.

    Attributes:
        body: The request.
        spelling: How arrays are spelled in it; ``None`` in JSON, which has none.
        is_document: Whether it is one of the HTTP protocol, however it is written.
    """

    body: bytes
    spelling: ArraySpelling | None
    is_document: bool

    @property
    def content_type(self) -> ContentType:
        """How it is written."""
        return ContentType.JSON if self.spelling is None else ContentType.MESSAGEPACK

    def tree(self) -> Any:
        """Read it."""
        if self.spelling is None:
            return json.loads(self.body)
        return decode_frame(self.body, kind=FrameKind.REQUEST)

    def packed(self, tree: Any) -> bytes:
        """Write it again, changed."""
        if self.spelling is None:
            return json.dumps(tree).encode()
        return encode_frame(tree, kind=FrameKind.REQUEST, spelling=self.spelling)

    def replaced(self, path: _Path, value: Any) -> bytes:
        """Write it with *value* at *path*."""
        return self.packed(_put(self.tree(), path, value))

    @property
    def frame(self) -> _Path:
        """Where the pixels of the first camera are."""
        tree = self.tree()
        if self.is_document:
            return ("cameras", next(iter(tree["cameras"])), 0, "data")
        return next(path for path, each in _arrays(tree, ()) if each.dtype == np.uint8)

    @property
    def camera(self) -> _Path:
        """Where the first camera is."""
        return self.frame[:2] if self.is_document else self.frame

    @property
    def state(self) -> tuple[_Path, Any]:
        """Where the state, or the first part of it, is; and it."""
        if self.is_document:
            return ("state",), np.array(self.tree()["state"])
        arrays = _arrays(self.tree(), ())
        return next((path, each) for path, each in arrays if each.dtype.kind == "f")

    def with_state(self, change: Callable[[Any], Any]) -> bytes:
        """Write it with another state."""
        path, state = self.state
        changed = change(state)
        if self.is_document and isinstance(changed, np.ndarray):
            changed = changed.tolist()
        return self.replaced(path, changed)


@attrs.frozen(kw_only=True, eq=False)
class Try:
    """
    A request that is wrong.

    Attributes:
        words: What is promised of it, as a sentence.
        make: Makes it; ``None`` if there is no such thing in the format.
        harmless: Whether a policy may answer it with actions.
    """

    words: str
    make: Callable[[Request], bytes | None]
    harmless: bool = False


def _array(dtype: str, shape: list[int], data: bytes) -> Callable[[Request], bytes | None]:
    """Make pixels of an array that says of itself what it likes."""

    def make(request: Request) -> bytes | None:
        if request.spelling is None:
            return None
        array = _bodies.spelled_array(data, dtype, shape, request.spelling)
        return request.replaced(request.frame, array)

    return make


def _pixels(words: str) -> Callable[[Request], bytes | None]:
    """Make pixels that are some text instead, in JSON."""
    return lambda each: each.replaced(each.frame, words) if each.spelling is None else None


def _vast(request: Request) -> bytes:
    if request.spelling is None:
        return request.with_state(lambda _: [10**400])
    return _bodies.vast(ContentType.MESSAGEPACK, request.spelling)


def _huge_picture(request: Request) -> bytes | None:
    if request.spelling is not None:
        return None
    frame = {"encoding": "base64-png", "data": base64.b64encode(_HUGE_PNG).decode()}
    return request.replaced(request.camera, [{**frame, "frame_index": 0}])


def _twice(request: Request) -> bytes:
    """Write two different states under one key."""
    if request.spelling is None:
        return request.body[:-1] + b', "state": [0]}'
    return b"\x82\xa1a\xc0\xa1a\xc3"


TRIES: tuple[Try, ...] = (
    Try(words="garbage is refused", make=lambda _: _bodies.garbage()),
    Try(words="a message without a byte is refused", make=lambda _: b""),
    Try(words="a message that lacks its end is refused", make=lambda each: each.body[:-9]),
    Try(words="a message that more follows is refused", make=lambda each: each.body + b"\x00"),
    Try(words="a message that is a list is refused", make=lambda each: each.packed([each.tree()])),
    Try(
        words="lists in lists by the thousand are refused",
        make=lambda each: _bodies.deep(each.content_type),
    ),
    Try(
        words="a list of very many lists is refused",
        make=lambda each: _bodies.many(each.content_type),
    ),
    Try(
        words="a list, or a number, without end is refused",
        make=lambda each: _bodies.countless(each.content_type),
    ),
    Try(words="an array, or a number, without measure is refused", make=_vast),
    Try(words="a key that is there twice is refused", make=_twice),
    Try(words="an array of objects is refused", make=_array("|O", [1], _PICKLE)),
    Try(words="an array of complex numbers is refused", make=_array("<c16", [1, 1, 3], bytes(48))),
    Try(words="an array of a structure is refused", make=_array("|V3", [1, 1], bytes(3))),
    Try(
        words="an array with a side below zero is refused", make=_array("|u1", [-1, 1, 3], bytes(3))
    ),
    Try(words="an array that lacks bytes is refused", make=_array("|u1", [9, 9, 3], bytes(3))),
    Try(
        words="pixels that are no numbers are refused",
        make=lambda each: each.replaced(each.frame, [None]),
    ),
    Try(words="pixels that are no base64 are refused", make=_pixels("*" * 99)),
    Try(words="pixels that are no picture are refused", make=_pixels("AAAA" * 99)),
    Try(words="a picture that says that it is huge is refused", make=_huge_picture),
    Try(
        words="a request without its camera is refused",
        make=lambda each: each.packed(_without(each)),
    ),
    Try(
        words="a state that is too long is refused",
        make=lambda each: each.with_state(lambda state: np.concatenate([state, state], axis=-1)),
    ),
    Try(
        words="a state that is text is refused", make=lambda each: each.with_state(lambda _: "home")
    ),
    Try(
        words="a state that is not finite does no harm",
        make=lambda each: each.with_state(lambda state: np.full_like(state, np.nan)),
        harmless=True,  # a policy may look at none of it
    ),
    Try(
        words="a key that is not known does no harm",
        make=lambda each: each.packed({**each.tree(), "unknown": [1, 2]}),
        harmless=True,
    ),
)
"""All of them, by rising cunning."""


def _arrays(tree: Any, path: _Path) -> Iterator[tuple[_Path, Any]]:
    if isinstance(tree, np.ndarray):
        yield path, tree
    elif isinstance(tree, Mapping):
        for key, each in tree.items():
            yield from _arrays(each, (*path, key))


def _put(tree: Any, path: _Path, value: Any) -> Any:
    """Copy *tree*, with *value* at *path*."""
    if not path:
        return value
    copy = tree.copy()
    copy[path[0]] = _put(tree[path[0]], path[1:], value)
    return copy


def _without(request: Request) -> Any:
    *above, key = request.camera
    tree = request.tree()
    inner = tree
    for each in above:
        inner = inner[each]
    return _put(tree, tuple(above), {name: each for name, each in inner.items() if name != key})
