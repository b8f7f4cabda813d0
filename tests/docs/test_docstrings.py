"""The examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib
import importlib.util

import pytest

from architecture.tree import is_door, module_files, module_name

MODULES = [
    name
    for name in (module_name(file) for file in module_files())
    if not is_door(name) and not name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str) -> None:
    """
    Each docstring by itself, with the names of its module.
    """
    if name == "vlmcore.vlm.loading" and importlib.util.find_spec("torch") is None:
        pytest.skip("its example loads a model")
    module = importlib.import_module(name)
    results = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert 0 == results.failed, f"{results.failed} of {results.attempted} failed, see above"
