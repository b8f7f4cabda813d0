"""The public names: listed here on purpose, documented, and found by completion."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

import vlmcore
from architecture.tree import ROOT, is_door, module_files, module_name, parse

# A name that is added to or taken from the package's face is a promise made or broken: say so here
# and in the changelog.
PUBLIC = [
    "ActionChunk",
    "CancelToken",
    "ContractError",
    "Embodiment",
    "Generation",
    "GenerationError",
    "GenerationOptions",
    "ImageLimits",
    "LimitExceededError",
    "MediaError",
    "MissingDependencyError",
    "ModelAccessError",
    "ModelError",
    "ModelMemoryError",
    "Observation",
    "Predictor",
    "Prompt",
    "SafetyGate",
    "StopReason",
    "UnsafeActionError",
    "UnsupportedModelError",
    "VettedChunk",
    "VlmcoreError",
    "load_image",
    "load_predictor",
]

PUBLIC_MODULES = [
    name
    for name in map(module_name, module_files())
    if not is_door(name) and not any(part.startswith("_") for part in name.split("."))
]


def test_the_face_of_the_package_is_the_list_above() -> None:
    """
    At most 25 names: a newcomer reads them all.
    """
    assert sorted(PUBLIC) == sorted(vlmcore.__all__)
    assert len(PUBLIC) <= 25
    assert vlmcore.__version__


def test_names_that_are_imported_later_are_there_and_others_are_not() -> None:
    """
    Completion lists them, and a name that does not exist is an AttributeError as anywhere.
    """
    assert set(PUBLIC) <= set(dir(vlmcore))
    assert vlmcore.SafetyGate is vlmcore.SafetyGate
    assert not hasattr(vlmcore, "SafetyGates")


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_documented(name: str) -> None:
    """
    A docstring of its own, and a place in the reference.
    """
    value = getattr(vlmcore, name)
    assert len(inspect.getdoc(value) or "") > 20
    assert own_docstring(value), f"{name} only inherits its docstring"
    reference = "\n".join(
        page.read_text(encoding="utf-8") for page in (ROOT / "docs/reference").rglob("*.md")
    )
    assert name in reference


@pytest.mark.parametrize("name", PUBLIC_MODULES)
def test_a_public_module_says_what_it_offers(name: str) -> None:
    """
    ``__all__`` names what is there, each with a docstring; a package may offer nothing itself.
    """
    module = importlib.import_module(name)
    assert module.__doc__
    is_package = hasattr(module, "__path__")
    offered = getattr(module, "__all__", [] if is_package else None)
    assert offered is not None, f"{name} has no __all__"
    assert len(set(offered)) == len(offered)
    for public in offered:
        value = getattr(module, public)
        if inspect.isclass(value) or inspect.isroutine(value):
            assert own_docstring(value), f"{name}.{public} has no docstring"


def test_every_module_says_what_it_is_for() -> None:
    """
    Also the private ones, and the ones behind the doors.
    """
    undocumented = []
    for file in module_files():
        first = parse(file).body[:1]
        if not first or "value" not in vars(first[0]):
            undocumented.append(module_name(file))
    assert [] == undocumented


def test_all_modules_are_found_by_their_package() -> None:
    """
    A folder without ``__init__.py`` would be left out of documentation and import contracts.
    """
    found = {
        info.name for info in pkgutil.walk_packages(vlmcore.__path__, "vlmcore.", onerror=print)
    }
    on_disk = {module_name(file) for file in module_files("vlmcore")} - {"vlmcore"}
    assert on_disk - found == set()


def own_docstring(value: object) -> bool:
    """Say whether *value* has a docstring that it did not inherit."""
    return (
        bool(getattr(value, "__doc__", None))
        if not inspect.isclass(value)
        else bool(vars(value).get("__doc__"))
    )
