"""Places in maps within maps: the keys from the outside in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["Path", "get", "leaves", "named", "put"]

Path = tuple[str, ...]


def put(request: dict[str, Any], path: Path, value: Any) -> None:
    """Put *value* where *path* leads; the maps on the way are made."""
    for key in path[:-1]:
        request = request.setdefault(key, {})
    request[path[-1]] = value


def get(request: Any, path: Path) -> Any:
    """Take what is where *path* leads; ``None`` if nothing is there."""
    for key in path:
        request = request.get(key) if isinstance(request, Mapping) else None
    return request


def leaves(value: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """List everything that is no map, with its path."""
    for key, each in value.items():
        if isinstance(each, Mapping):
            yield from leaves(each, (*path, key))
        else:
            yield (*path, key), each


def named(path: Path) -> str:
    """Write *path* as a person would, for errors."""
    return "request" + "".join(f"[{key!r:.80}]" for key in path)
