"""The images of a folder."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from vlmcore._whole_files import what_failed
from vlmcore.errors import ContractError, JobSourceError
from vlmcore.jobs.items import FileContent, Item

__all__ = ["IMAGE_SUFFIXES", "FolderImages"]

IMAGE_SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".apng", ".webp", ".gif", ".bmp", ".dib"}
    | {".tif", ".tiff", ".ppm", ".pgm", ".pbm", ".pnm", ".avif"}
)
"""How the names of files end that `vlmcore.load_image` may read; what they are is seen later."""


class FolderImages:
    """
    The images of a folder, sorted by name: first the files of a folder, then its sub-folders.

    What is an image is told by how its name ends, or by *patterns*. Links to files are followed;
    links to folders are not, as they may lead in a circle.

    Args:
        root: The folder.
        patterns: Shell patterns, as ``"*.png"`` for names and ``"day-?/*.jpg"`` for paths from the
            folder; an image matches one of them. None takes everything that ends as images do.
        recursive: Whether sub-folders are looked into.
        hidden: Whether files and folders are taken whose names begin with a point.

    Raises:
        ContractError: If an argument is not as described.
        JobSourceError: If there is no such folder.

    Example:
        >>> from vlmcore import embedded
        >>> samples = Path(embedded.__file__).parent / "samples"
        >>> [item.key for item in FolderImages(samples)][:2]
        ['scene-1.png', 'scene-2.png']
    """

    is_quick_to_list = True

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        patterns: Sequence[str] = (),
        recursive: bool = True,
        hidden: bool = False,
    ) -> None:
        if isinstance(patterns, str) or not all(isinstance(p, str) and p for p in patterns):
            raise ContractError("patterns", f"got {patterns!r:.80}, expected texts such as '*.png'")
        self._root = Path(root)
        self._patterns = tuple(patterns)
        self._recursive = recursive
        self._hidden = hidden
        if not self._root.is_dir():
            problem = "is no folder" if self._root.exists() else "there is no such folder"
            raise JobSourceError(self.name, problem)

    @property
    def name(self) -> str:
        """The folder, as it was given."""
        return _text(str(self._root))

    @property
    def place(self) -> Path:
        """The folder."""
        return self._root

    def __iter__(self) -> Iterator[Item]:
        """Give the images; a sub-folder that cannot be read ends it with `JobSourceError`."""
        waiting = [""]  # and no recursion: folders may be deeper than calls
        while waiting:
            folder = waiting.pop()
            files, folders = self._listed(folder)
            for name in files:
                relative = f"{folder}{name}"
                if self._is_meant(relative):
                    path = self._root / relative
                    yield Item(key=_text(relative), content=FileContent(path), path=path)
            waiting += [f"{folder}{name}/" for name in reversed(folders)]

    def _listed(self, folder: str) -> tuple[list[str], list[str]]:
        files: list[str] = []
        folders: list[str] = []
        place = self._root / folder
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    if entry.name.startswith(".") and not self._hidden:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.name)
                    elif not entry.is_dir():
                        files.append(entry.name)
        except OSError as error:
            raise JobSourceError(_text(str(place)), what_failed(error)) from None
        return sorted(files), sorted(folders) if self._recursive else []

    def _is_meant(self, relative: str) -> bool:
        name = relative.rpartition("/")[2]
        if not self._patterns:
            return PurePosixPath(name).suffix.lower() in IMAGE_SUFFIXES
        return any(
            fnmatch.fnmatch(relative if "/" in pattern else name, pattern)
            for pattern in self._patterns
        )


def _text(path: str) -> str:
    """Write a path as text, also one that is no UTF-8, which no table could hold."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
