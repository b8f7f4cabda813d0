"""The table of extras is the one of pyproject.toml, and versions are read as numbers."""

import re
import sys
from pathlib import Path

import pytest

from vlmcore import _extras
from vlmcore._extras import EXTRAS, look_at

_REQUIREMENT = re.compile(r"([\w-]+)(?:\[.+\])?>=([\w.]+)(?:,<[\w.]+)?")
PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def declared() -> dict[str, dict[str, str]]:
    tomllib = pytest.importorskip("tomllib", reason="reads TOML from Python 3.11 on")
    extras = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]["optional-dependencies"]

    def packages(name: str) -> dict[str, str]:
        found = {}
        for requirement in extras[name]:
            if requirement.startswith("vlmcore["):
                for other in re.findall(r"\[(.+)\]", requirement)[0].split(","):
                    found.update(packages(other))
                continue
            if ";" in requirement:  # for Pythons that do not bring it
                continue
            package, least = _REQUIREMENT.fullmatch(requirement).groups()
            found[package] = least
        return found

    return {name: packages(name) for name in extras if name != "all"}


def test_the_table_is_that_of_the_package() -> None:
    """
    Whoever changes an extra changes both, or this fails.
    """
    assert declared() == EXTRAS


def test_what_is_missing_and_what_is_too_old_is_told_apart(monkeypatch) -> None:
    """
    A version below the one that is needed does not make an extra complete.
    """
    there = {"torch": "2.3.1+cu121", "transformers": "4.57.0"}
    monkeypatch.setattr(_extras, "installed_version", there.get)

    local = look_at("local")

    assert (("pillow",), {"torch": "2.4"}) == (local.missing, local.too_old)
    assert there == local.installed
    assert not local.is_complete


@pytest.mark.parametrize("name", EXTRAS)
def test_looking_imports_nothing(name) -> None:
    """
    Versions are read from metadata: a doctor must not die of what is broken.
    """
    before = set(sys.modules)
    look_at(name)

    assert set() == {"torch", "transformers", "httpx", "lerobot", "ray"} & (
        set(sys.modules) - before
    )
