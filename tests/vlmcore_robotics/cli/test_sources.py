"""Where the policies of ``vlmcore policy serve`` and ``record`` come from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vlmcore.rollout.episode_reader import EpisodeReader

SMALL = [[0.05, 0.05], [0.1, 0.1]]
MODULE = """
from vlmcore.errors import PolicyError
from vlmcore.policy.interface import PolicyInfo
from vlmcore.testing import ScriptedPolicy

INFO = PolicyInfo(name="mine", action_names=("shoulder", "elbow"))

def make():
    return ScriptedPolicy([[[0.05, 0.05]]], info=INFO)

class Made:
    info = INFO
    def infer(self, seen): return make().infer(seen)
    def reset(self): ...
    def close(self): ...

ready = Made()
number = 7

def broken():
    raise ValueError("no weights, token=hunter2secret")
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a module in it."""
    (tmp_path / "my_arm_policy.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", __import__("sys").path.copy())
    monkeypatch.delitem(__import__("sys").modules, "my_arm_policy", raising=False)
    return tmp_path


@pytest.fixture
def recorded(policy, robot, here: Path) -> Any:
    """Record a source once; give what it answered, or what was said."""

    def run(source: object, *words: object) -> Any:
        path = here / "out.jsonl"
        done = policy("record", source, path, "--embodiment", robot, "--calls", 1, *words)
        if done.code == 0:
            (step,) = EpisodeReader(path)
            done.chunk = step.chunk
        return done

    return run


@pytest.mark.parametrize(
    ("word", "horizon", "values"),
    [
        ("0.05,-0.1", 1, [[0.05, -0.1]]),
        ("elbow=0.1,shoulder=0.2", 1, [[0.2, 0.1]]),
        ("zero", 3, [[0.0, 0.0]] * 3),
    ],
)
def test_a_constant_is_one_action_of_the_robot(
    recorded, word: str, horizon: int, values: list[list[float]]
) -> None:
    """
    As often as the horizon says.
    """
    done = recorded(f"constant:{word}", "--horizon", horizon)
    assert values == done.chunk.values.tolist()


@pytest.mark.parametrize("word", ["1,2,3", "up", "elbow=1", "unknown", "nan,0"])
def test_a_constant_of_something_else_is_told(recorded, word: str) -> None:
    """
    Before anything is served.
    """
    done = recorded(f"constant:{word}")
    assert done.code == 2
    assert "constant: got" in done.err


def test_a_chunk_is_read_from_a_document_or_an_array(recorded, here: Path) -> None:
    """
    In the order of the robot, whichever the document has.
    """
    document = {"source": "old", "action_names": ["elbow", "shoulder"], "actions": SMALL[:1]}
    (here / "chunk.json").write_text(json.dumps(document | {"actions": [[0.1, 0.05]]}))
    assert [[0.05, 0.1]] == recorded("chunk:chunk.json").chunk.values.tolist()

    (here / "out.jsonl").unlink()
    np.save(here / "chunk.npy", np.array(SMALL))
    assert SMALL == recorded("chunk:chunk.npy").chunk.values.tolist()


def test_an_episode_plays_call_by_call(recorded, policy, robot, here: Path) -> None:
    """
    After its end there are errors, and no invented actions.
    """
    recorded("constant:0.05,0.05")
    done = policy(
        "record", "episode:out.jsonl", "b.jsonl", "--embodiment", robot, "--calls", 2, "--json"
    )
    assert (1, 2, 1) == (done.code, done.document["calls"], done.document["failed"])
    assert "is at its end" in done.err
    assert (here / "b.jsonl").exists()


@pytest.mark.parametrize("name", ["make", "Made", "ready"])
def test_a_function_a_class_and_a_policy_of_a_module_will_do(recorded, name: str) -> None:
    """
    It is said whose code is run.
    """
    done = recorded(f"my_arm_policy:{name}", "--import-here")
    assert [[0.05, 0.05]] == done.chunk.values.tolist()
    assert "runs the code of my_arm_policy" in done.err
    assert "my_arm_policy.py" in done.err


def test_this_folder_is_not_imported_from_unless_that_is_said(recorded) -> None:
    """
    Whatever lies around would be run.
    """
    done = recorded("my_arm_policy:make")
    assert done.code == 1
    assert "there is no module 'my_arm_policy'; --import-here" in done.err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("broken", "ValueError: no weights, token=[REDACTED] (my_arm_policy.py, line "),
        ("number", "TypeError: 'int' object is not callable"),
        ("nothing", "AttributeError: module 'my_arm_policy' has no attribute 'nothing'"),
        ("INFO.name.upper", "gave str, expected a Policy"),
    ],
)
def test_code_that_makes_no_policy_is_told_where_it_failed(recorded, name: str, said: str) -> None:
    """
    In one line, and without its tokens.
    """
    done = recorded(f"my_arm_policy:{name}", "--import-here")
    assert done.code == 1
    assert said in done.err
    assert "Traceback" not in done.err


def test_a_module_that_misses_another_one_is_told_so(recorded, here: Path) -> None:
    """
    It is not the module itself that is missing.
    """
    (here / "needs_more.py").write_text("import no_such_package_anywhere")
    done = recorded("needs_more:make", "--import-here")
    assert "No module named 'no_such_package_anywhere' (needs_more.py, line 1)" in done.err


@pytest.mark.parametrize("word", ["", "policy", "chunk:", ":x", "my_arm_policy:"])
def test_what_is_no_source_is_told(recorded, word: str) -> None:
    """
    With where to read what there is.
    """
    done = recorded(word)
    assert done.code == 2
    assert "SOURCE: got" in done.err


def test_a_folder_that_is_no_policy_of_lerobot_is_told(recorded, here: Path) -> None:
    """
    Or that it is not installed.
    """
    (here / "weights").mkdir()
    done = recorded("lerobot:weights")
    assert done.code in {1, 4}
    assert len(done.err.splitlines()) == 1
