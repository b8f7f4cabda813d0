"""Modules and functions stay small enough to be read in one go."""

from __future__ import annotations

import ast
from pathlib import Path

from architecture.tree import module_files, module_name, place, walk

MAX_MODULE_LINES = 350
MAX_FUNCTION_LINES = 50


def test_no_module_is_longer_than_350_lines() -> None:
    """
    One idea a file: a longer one holds two.
    """
    sizes = {
        module_name(file): len(file.read_text(encoding="utf-8").splitlines())
        for file in module_files()
    }
    assert {} == {name: size for name, size in sizes.items() if size > MAX_MODULE_LINES}


def test_no_function_is_longer_than_50_lines() -> None:
    """
    A function fits on a screen; its docstring is not counted, its signature is.
    """
    assert {} == {
        place(file, node): lines
        for file, node in walk()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := length_without_docstring(node) - widgets(file, node)) > MAX_FUNCTION_LINES
    }


def widgets(file: Path, function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a signature that is a file format: a node takes what workflows hold."""
    is_node = module_name(file).startswith("vlmcore_comfy.nodes.")
    return function.body[0].lineno - function.lineno - 2 if is_node else 0


def length_without_docstring(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of *function* that a reader has to follow."""
    total = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is not None and first.end_lineno is not None:
        total -= first.end_lineno - first.lineno + 1
    return total
