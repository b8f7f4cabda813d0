"""The examples in docstrings run, and what Sphinx reads of them is what was meant."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util

import pytest

from architecture.tree import is_door, module_files, module_name, walk

MODULES = [
    name
    for name in (module_name(file) for file in module_files())
    if not is_door(name) and not name.endswith("__main__")
]
NEED_TORCH = ("vlmcore.vlm.loading", "vlmcore.weights.lazy", "vlmcore.weights.modules")


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str) -> None:
    """
    Each docstring by itself, with the names of its module.
    """
    if name in NEED_TORCH and importlib.util.find_spec("torch") is None:
        pytest.skip("its example loads a model")
    module = importlib.import_module(name)
    results = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert 0 == results.failed, f"{results.failed} of {results.attempted} failed, see above"


def test_the_docstring_of_a_property_begins_with_no_type() -> None:
    """
    Sphinx takes what is before the first colon for the type of the property, and finds no class.
    """
    wrong = []
    for file, node in walk(holding=["property"]):
        if isinstance(node, ast.FunctionDef) and any(
            isinstance(by, ast.Name) and by.id in {"property", "cached_property"}
            for by in node.decorator_list
        ):
            summary = (ast.get_docstring(node) or "").partition("\n")[0]
            if ": " in summary:
                wrong.append(f"{module_name(file)}: {summary}")
    assert [] == wrong
