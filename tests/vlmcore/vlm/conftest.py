"""Models for the tests of `vlmcore.vlm`: made once a session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """
    Give the folder of a tiny model of a kind, one of ``tiny_models.KINDS``; do not change it.
    """
    from tiny_models import make_tiny_model  # noqa: PLC0415 - imports torch

    root = tmp_path_factory.mktemp("models")
    made: dict[str, Path] = {}

    def of_kind(kind: str) -> Path:
        if kind not in made:
            made[kind] = make_tiny_model(kind, root / kind)
        return made[kind]

    return of_kind
