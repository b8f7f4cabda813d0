"""
Hold the mutants that survived a run of mutmut against the list of those that change nothing.

Run it where mutmut was run, next to ``mutants/``. It fails on every survivor that is not listed, on
every entry that no survivor needs, and on mutants that no test reached or that were not run.
"""

from __future__ import annotations

import ast
import difflib
import functools
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LISTED = Path(__file__).with_name("equivalent.toml")
KILLED, TIMEOUT = frozenset((1, 3)), frozenset((-24, 24, 36, 152, 255))  # as mutmut counts them
SURVIVED = 0

#: The function, and its line before and after.
Mutant = tuple[str, str, str]


def results(run: Path) -> Iterator[tuple[Path, str, int | None]]:
    """Read what became of each mutant: its module, its name, the exit code of its tests."""
    for meta in sorted((run / "mutants").rglob("*.meta")):
        said = json.loads(meta.read_text("utf-8"))
        for name, code in said["exit_code_by_key"].items():
            yield meta.with_suffix(""), name, code


def mutant_of(module: Path, name: str) -> Mutant:
    """Say what a mutant changes, in lines that do not depend on how the source is wrapped."""
    where, _, mangled = name.rpartition(".")
    original, _, _ = mangled.rpartition("__mutmut_")
    lines = _functions(module)
    before, after = lines[f"{original}__mutmut_orig"], lines[mangled]
    removed, added = [], []
    for line in difflib.ndiff(before, after):
        if line.startswith("- "):
            removed.append(line[2:].strip())
        elif line.startswith("+ "):
            added.append(line[2:].strip())
    function = original.removeprefix("x_").removeprefix("xǁ").replace("ǁ", ".")
    return f"{where}.{function}", " / ".join(removed), " / ".join(added)


@functools.cache
def _functions(module: Path) -> dict[str, list[str]]:
    """Find every function that mutmut wrote, one statement a line."""
    found = {}
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef) and "__mutmut_" in node.name:
            name, node.name = node.name, "f"
            found[name] = ast.unparse(node).splitlines()
    return found


def read_listed() -> list[Mutant]:
    """Read the list; each entry has one line before, and one after or several."""
    entries = tomllib.loads(LISTED.read_text("utf-8"))["equivalent"]
    return [
        (entry["function"], entry["before"], after) for entry in entries for after in entry["after"]
    ]


def faults(
    survivors: Iterable[Mutant],
    listed: Iterable[Mutant],
    late: Iterable[Mutant],
    others: Mapping[str, int | None],
) -> list[str]:
    """
    Say what is wrong with a run: new survivors, entries without one, mutants not tried.

    On a machine with other work a mutant that changes nothing may run out of time as well.
    """
    lived, known = set(survivors), set(listed)
    useless = known - lived - set(late)
    return [
        *(f"survived: {name}\n  - {old}\n  + {new}" for name, old, new in sorted(lived - known)),
        *(f"not needed: {name}\n  - {old}\n  + {new}" for name, old, new in sorted(useless)),
        *(f"not killed: {name}, exit code {code}" for name, code in sorted(others.items())),
    ]


def main(run: Path) -> int:
    """Check the run in *run*; print its figure, and what is wrong with it."""
    every = list(results(run))
    tried = Counter(
        "killed" if code in KILLED else "timed out" if code in TIMEOUT else "left"
        for _, _, code in every
    )
    survivors = [mutant_of(module, name) for module, name, code in every if code == SURVIVED]
    late = [mutant_of(module, name) for module, name, code in every if code in TIMEOUT]
    others = {
        name: code
        for _, name, code in every
        if code != SURVIVED and code not in KILLED and code not in TIMEOUT
    }
    listed = read_listed()
    found = faults(survivors, listed, late, others)
    for fault in found:
        print(fault)  # noqa: T201 - it is what a person reads
    equivalent = sum(mutant in set(listed) for mutant in survivors)
    print(  # noqa: T201
        f"{len(every)} mutants: {tried['killed']} killed, {tried['timed out']} never ended, "
        f"{equivalent} change nothing, {len(survivors) - equivalent} others survived"
    )
    return 1 if found or not every else 0


if __name__ == "__main__":
    sys.exit(main(Path.cwd()))
