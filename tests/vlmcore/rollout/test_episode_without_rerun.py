"""Tests of `vlmcore.rollout.rerun_export` where Rerun is not installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from episode_cases import step, write
from vlmcore import rollout
from vlmcore.errors import MissingDependencyError
from vlmcore.rollout.episode_reader import EpisodeReader
from vlmcore.rollout.rerun_export import export_to_rerun


def test_a_missing_rerun_is_said_with_the_extra_that_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Before anything is written.
    """
    reader = EpisodeReader(write(tmp_path / "run.jsonl", step()))
    monkeypatch.delitem(sys.modules, "vlmcore.rollout._rerun", raising=False)
    monkeypatch.delattr(rollout, "_rerun", raising=False)
    monkeypatch.setattr(sys, "meta_path", [NoRerun(), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "rerun", raising=False)
    with pytest.raises(MissingDependencyError, match=r'pip install "vlmcore\[rerun\]"') as error:
        export_to_rerun(reader, tmp_path / "run.rrd")
    assert ("rerun", "rerun") == (error.value.package, error.value.extra)
    assert ["run.jsonl"] == [each.name for each in tmp_path.iterdir()]


class NoRerun:
    """Finds that Rerun is not installed."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "rerun":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
