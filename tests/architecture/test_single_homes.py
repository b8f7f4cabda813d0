"""What has one home lives there only: bounds, optional packages, lazy imports, the environment."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.metadata import metadata, requires
from pathlib import Path

from architecture.tree import is_door, module_files, module_name, parse, place, walk

# Numbers of 4096 and above that are no bound on what comes in, and what they are instead.
# Numbers written in hexadecimal are facts of a file format, and need no entry.
FACTS = {
    ("vlmcore._arrays", 1 << 53): "whole numbers that float64 is exact for",
    ("vlmcore._json_values", 1 << 63): "64-bit numbers",
    ("vlmcore._json_values", 1 << 64): "64-bit numbers",
    ("vlmcore.media._header", 65535): "the largest 16-bit number",
    ("vlmcore.media._pillow", 65535): "the largest 16-bit sample",
    ("vlmcore.media.arrays", 1 << 18): "values converted at a time",
    ("vlmcore.media.sources", 1 << 20): "bytes read at a time",
    ("vlmcore.testing._json_strategies", 1 << 63): "64-bit numbers",
    ("vlmcore.testing._json_strategies", 1 << 64): "64-bit numbers",
    ("vlmcore.testing.strategies", 1 << 63): "seeds are 63 bits wide",
    ("vlmcore.vlm.generation", 1 << 63): "seeds are 63 bits wide",
    ("vlmcore_audio.containers", 16_000): "samples a second",
    ("vlmcore_audio.containers", 24_000): "samples a second",
    ("vlmcore_audio.containers", 32_000): "samples a second",
    ("vlmcore_audio.containers", 44_100): "samples a second",
    ("vlmcore_robotics.wire.ports", 8787): "the port of the HTTP protocol",
    ("vlmcore_robotics.wire.ports", 8000): "the port of openpi",
    ("vlmcore_robotics.wire.ports", 5555): "the port of GR00T",
    ("vlmcore._net.tcp", 1 << 18): "bytes read at a time",
    ("vlmcore_audio._soundfile", 1 << 16): "samples at a time",
    ("vlmcore_audio._soundfile", 192_000): "the rate that the encoder of Vorbis bears",
    ("vlmcore_robotics.datasets._parquet", 1 << 16): "bytes read at a time",
    ("vlmcore._parquet_pages", 1 << 16): "bytes that a header stands in",
    ("vlmcore.jobs.clusters", 1 << 16): "the ports there are",
    ("vlmcore.jobs._parquet", 1 << 16): "bytes read at a time",
    ("vlmcore.jobs._parquet", 10_000): "rows that are written at a time",
    ("vlmcore.jobs._parquet", 1 << 24): "characters that are written at a time",
    ("vlmcore.jobs.sources._lines", 1 << 18): "bytes read at a time",
    ("vlmcore_robotics.clients._websocket_line", 1 << 17): "bytes of a request held twice",
    ("vlmcore_robotics.clients._asyncio_tcp", 1 << 18): "bytes written at a time",
    ("vlmcore_robotics.wire._zmtp_frames", 1 << 16): "bytes read before it is known what they are",
}
BOUNDS = "vlmcore.limits"
DATA_ONLY = ("vlmcore.vlm.catalog", "vlmcore.vlm.remote.providers")
WIDGETS = "vlmcore_comfy.nodes."  # their ranges are a file format, and held to golden files

SHIFTS_AND_PRODUCTS = (ast.LShift, ast.Mult, ast.Pow)
LAZY = {"import_module", "importlib.import_module", "__import__"}


def test_bounds_live_in_limits_only() -> None:
    """
    A bound that is written where it is used cannot be found, passed in, or raised by a caller.
    """
    found = {
        (module_name(file), value): place(file, node)
        for file, node, value in large_numbers()
        if not is_of_bounds(file)
        and module_name(file) not in DATA_ONLY
        and not module_name(file).startswith(WIDGETS)
    }
    assert {} == {where: found[where] for where in found.keys() - FACTS.keys()}
    assert set() == FACTS.keys() - found.keys(), "entries of FACTS that are out of date"


def test_no_constant_is_called_max_outside_limits() -> None:
    """
    A name with MAX in it is a bound.
    """
    assert [] == [
        place(file, node)
        for file, node in walk(holding=["MAX_"])
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        if "MAX_" in node.id and not is_of_bounds(file)
    ]


def test_a_missing_package_is_noticed_in_one_place_only() -> None:
    """
    ``except ImportError`` elsewhere hides a broken install behind "please install it".
    """
    missing = {"ImportError", "ModuleNotFoundError"}
    assert ["vlmcore._optional"] == sorted(
        {
            module_name(file)
            for file, node in walk(holding=sorted(missing))
            if isinstance(node, ast.ExceptHandler) and node.type is not None
            if missing & names_in(node.type)
        }
    )


def test_nothing_is_imported_by_a_computed_name() -> None:
    """
    The import contracts read ``import`` statements: a name made at run time would pass them by.
    What a person names on the command line is no name of ours.
    """
    assert [] == [
        place(file, node)
        for file, node in walk(holding=["import_module", "__import__"])
        if isinstance(node, ast.Call) and ast.unparse(node.func) in LAZY
        if module_name(file) != "vlmcore_robotics.cli._modules"
    ]


def test_the_environment_is_read_by_the_command_the_secrets_and_the_backends_only() -> None:
    """
    What a function does is decided by its arguments; a token is in none of them.
    """
    readers = {
        module_name(file)
        for file, node in walk(holding=["environ", "getenv"])
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("os.environ", "os.getenv")
    }
    readers -= {name for name in readers if is_door(name) or name.startswith("vlmcore.cli")}
    assert {"vlmcore.secrets"} == readers


def test_every_extra_that_an_error_names_is_an_extra_that_brings_the_package() -> None:
    """
    "pip install vlmcore[x]" in an error message must be true.
    """
    extras = set(metadata("vlmcore").get_all("Provides-Extra") or ())
    for file, extra, packages in optional_dependencies():
        assert extra in extras, f"{file.name} names the extra {extra!r}"
        brought = "\n".join(need for need in requires("vlmcore") or () if f"'{extra}'" in need)
        for package in packages:
            named = {"PIL": "pillow", "ml_dtypes": "ml-dtypes"}.get(package, package)
            assert named in brought, f"{package} in {extra}"


def is_of_bounds(file: Path) -> bool:
    """Say whether *file* is one of those that hold the bounds."""
    return f"{module_name(file)}.".startswith(f"{BOUNDS}.")


def large_numbers() -> Iterator[tuple[Path, ast.AST, int]]:
    """Find whole numbers of 4096 and above, also as shifts, products and powers of literals."""
    for file in module_files():
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(parse(file)):
            value = number(node)
            if value is None or value < 4096:
                continue
            if not (ast.get_source_segment(text, node) or "").startswith("0x"):
                yield file, node, value


def number(node: ast.AST) -> int | None:
    """Work out a whole number that is written as a literal or as arithmetic on literals."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, SHIFTS_AND_PRODUCTS)):
        return None
    left, right = number(node.left), number(node.right)
    if left is None or right is None or right > 128:
        return None
    match node.op:
        case ast.LShift():
            return left << right
        case ast.Mult():
            return left * right
        case _:
            return int(left**right)


def names_in(node: ast.AST) -> set[str]:
    """Collect the names that an expression mentions."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def optional_dependencies() -> Iterator[tuple[Path, str, list[str]]]:
    """Find the calls of ``optional_dependency`` and of ``MissingDependencyError``."""
    for file, node in walk(holding=["optional_dependency", "MissingDependencyError"]):
        if not isinstance(node, ast.Call) or module_name(file) == "vlmcore._optional":
            continue
        words = [part.value for part in node.args if isinstance(part, ast.Constant)]
        if len(words) != len(node.args) or len(words) < 2:
            continue
        match ast.unparse(node.func):
            case "optional_dependency":
                yield file, str(words[0]), [str(word) for word in words[1:]]
            case "MissingDependencyError":
                yield file, str(words[1]), [str(words[0])]
