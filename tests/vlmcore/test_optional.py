"""Tests of `vlmcore._optional`."""

from __future__ import annotations

from pathlib import Path

import pytest

from vlmcore._optional import optional_dependency
from vlmcore.errors import MissingDependencyError


def test_a_missing_package_is_named_with_the_extra_that_brings_it() -> None:
    """
    The message is the command to type.
    """
    with (
        pytest.raises(MissingDependencyError, match=r'pip install "vlmcore\[local\]"') as caught,
        optional_dependency("local", "no_such_package"),
    ):
        import no_such_package  # type: ignore[import-not-found]  # noqa: F401, PLC0415

    assert ("no_such_package", "local") == (caught.value.package, caught.value.extra)
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_a_submodule_that_is_missing_is_a_broken_install() -> None:
    """
    The package is there: telling its owner to install it would be wrong.
    """
    with pytest.raises(ModuleNotFoundError) as caught, optional_dependency("local", "json"):
        import json.no_such_part  # type: ignore[import-not-found]  # noqa: F401, PLC0415

    assert not isinstance(caught.value, MissingDependencyError)


def test_a_package_that_is_there_and_broken_keeps_its_own_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A version conflict inside it is its own message to give.
    """
    (tmp_path / "broken_package.py").write_text("import something_it_forgot_to_declare\n")
    monkeypatch.syspath_prepend(tmp_path)

    with (
        pytest.raises(ModuleNotFoundError, match="something_it_forgot_to_declare") as caught,
        optional_dependency("local", "broken_package"),
    ):
        import broken_package  # type: ignore[import-not-found]  # noqa: F401, PLC0415

    assert not isinstance(caught.value, MissingDependencyError)


def test_nothing_happens_when_nothing_is_missing() -> None:
    """
    The body's names are there afterwards.
    """
    with optional_dependency("local", "json"):
        import json  # noqa: PLC0415

    assert "{}" == json.dumps({})
