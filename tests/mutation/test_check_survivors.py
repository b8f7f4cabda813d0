"""Tests of the check of mutants: those that survive are those that change nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mutation import check_survivors

LISTED = """
[[equivalent]]
function = "vlmcore.safety.gate.SafetyGate.vet"
before = "x = f(1)"
after = ["x = f(2)"]
reason = "f ignores it"
"""
MODULE = '''
class SafetyGate:
    def xǁSafetyGateǁvet__mutmut_orig(self):
        """Say x."""
        x = f(
            1,
        )
        return x

    def xǁSafetyGateǁvet__mutmut_1(self):
        """Say x."""
        x = f(
            2,
        )
        return x
'''


@pytest.fixture
def check(tmp_path: Path, capsys, monkeypatch) -> Callable[[int | None, str], tuple[int, str]]:
    """Write what a run leaves and a list, and check: its exit code, and what it says."""

    def checked(code: int | None, listed: str) -> tuple[int, str]:
        module = tmp_path / "mutants/src/vlmcore/safety/gate.py"
        module.parent.mkdir(parents=True)
        module.write_text(MODULE, "utf-8")
        codes = {"vlmcore.safety.gate.xǁSafetyGateǁvet__mutmut_1": code}
        meta = json.dumps({"exit_code_by_key": codes})
        module.with_name("gate.py.meta").write_text(meta, "utf-8")
        (tmp_path / "equivalent.toml").write_text(listed, "utf-8")
        monkeypatch.setattr(check_survivors, "LISTED", tmp_path / "equivalent.toml")
        return check_survivors.main(tmp_path), capsys.readouterr().out

    return checked


@pytest.mark.parametrize(
    ("code", "listed", "said"),
    [
        (0, LISTED, "1 mutants: 0 killed, 0 never ended, 1 change nothing, 0 others survived"),
        (1, "equivalent = []", "1 mutants: 1 killed, 0 never ended"),
        (-24, "equivalent = []", "1 mutants: 0 killed, 1 never ended"),
        (-24, LISTED, "1 mutants: 0 killed, 1 never ended"),
    ],
)
def test_a_run_passes_where_all_that_survived_is_listed(
    code: int, listed: str, said: str, check
) -> None:
    """
    However the lines are wrapped in the source.
    """
    failed, out = check(code, listed)
    assert (0, True) == (failed, out.startswith(said))


@pytest.mark.parametrize(
    ("code", "listed", "said"),
    [
        (0, "equivalent = []", "survived: vlmcore.safety.gate.SafetyGate.vet\n  - x = f(1)\n"),
        (0, LISTED.replace("f(2)", "f(3)"), "  + x = f(2)\nnot needed: vlmcore.safety.gate."),
        (1, LISTED, "not needed: vlmcore.safety.gate.SafetyGate.vet\n  - x = f(1)\n  + x = f(2)"),
        (33, "equivalent = []", "not killed: vlmcore.safety.gate.x"),
        (None, "equivalent = []", "not killed: vlmcore.safety.gate.x"),
    ],
)
def test_a_run_fails_on_anything_else(code: int | None, listed: str, said: str, check) -> None:
    """
    A new survivor, an entry that is no longer needed, a mutant that no test reached or none tried.
    """
    failed, out = check(code, listed)
    assert 1 == failed
    assert said in out


def test_no_run_at_all_is_no_success(tmp_path: Path) -> None:
    """
    There is nothing to say of it.
    """
    assert 1 == check_survivors.main(tmp_path)


def test_every_entry_of_the_list_has_a_reason_and_stands_once() -> None:
    """
    A person decided each.
    """
    entries = check_survivors.tomllib.loads(check_survivors.LISTED.read_text("utf-8"))["equivalent"]
    assert all(len(entry["reason"]) >= 10 for entry in entries)
    listed = check_survivors.read_listed()
    assert len(listed) == len(set(listed))
