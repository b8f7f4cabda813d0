"""Where the sources are, and what is in them, for the tests of the architecture."""

from __future__ import annotations

import ast
import configparser
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
PACKAGES = ("vlmcore", "vlmcore_robotics", "vlmcore_audio", "vlmcore_comfy")


def module_files(*packages: str) -> list[Path]:
    """List the Python files of *packages*, all of ours unless told otherwise."""
    return sorted(file for name in packages or PACKAGES for file in (SRC / name).rglob("*.py"))


def module_name(file: Path) -> str:
    """Name the module that *file* holds."""
    parts = file.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def parse(file: Path) -> ast.Module:
    """Parse *file*."""
    return ast.parse(file.read_text(encoding="utf-8"), filename=str(file))


def walk(*packages: str, holding: Sequence[str] = ("",)) -> Iterator[tuple[Path, ast.AST]]:
    """
    Walk every syntax node of *packages*, with the file it is in.

    Files whose text holds none of the words *holding* are not parsed, which takes the time.
    """
    for file in module_files(*packages):
        text = file.read_text(encoding="utf-8")
        if any(word in text for word in holding):
            for node in ast.walk(parse(file)):
                yield file, node


def place(file: Path, node: ast.AST) -> str:
    """Say where *node* is, as an editor understands it."""
    return f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"


def law() -> configparser.ConfigParser:
    """Read ``.importlinter``."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter", encoding="utf-8")
    return parser


@cache
def doors() -> frozenset[str]:
    """Name the modules that may import a framework, packages as ``name.*``."""
    rules = law()
    lines = [
        line
        for section in rules.sections()
        for line in rules.get(section, "ignore_imports", fallback="").splitlines()
    ]
    return frozenset(line.split(" -> ")[0].strip() for line in lines if line.strip())


def is_door(module: str) -> bool:
    """Say whether *module* is behind one of the doors."""
    return any(
        module == door or (door.endswith(".*") and module.startswith(door.removesuffix("*")))
        for door in doors()
    )
