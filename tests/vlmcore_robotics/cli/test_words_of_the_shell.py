"""What the command says is said to somebody at a shell, who cannot pass an argument of Python."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ARGUMENT = re.compile(r"\b[a-z_]+=(True|False|None|[A-Za-z_.]+\()")


@pytest.fixture
def run(policy, robot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An episode without frames, in this folder."""
    monkeypatch.chdir(tmp_path)
    path = Path("run.jsonl")
    policy("record", "constant:zero", path, "--embodiment", robot, "--calls", 2)
    return path


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("call", "tcp://192.0.2.1:1"), "--allow-remote"),
        (("call", "wss://example.com"), "--allow-remote"),
        (("doctor", "https://example.com"), "--allow-remote"),
        (("conformance", "tcp://192.0.2.1:1"), "--allow-remote"),
        (("serve", "tcp://192.0.2.1:1", "--protocol", "openpi"), "--allow-remote"),
        (
            ("serve", "constant:zero", "--protocol", "openpi", "--host", "192.0.2.1"),
            "--allow-clients",
        ),
        (
            ("serve", "constant:zero", "--protocol", "openpi", "--record", "run.jsonl"),
            "exists already",
        ),
        (("record", "constant:zero", "run.jsonl"), "exists already"),
        (("record", "constant:zero", "new.jsonl", "--observations", "run.jsonl"), "--frames png"),
        (("eval", "constant:zero", "run.jsonl"), "--frames png"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, tuple) else "",
)
def test_no_error_asks_for_an_argument_of_python(
    policy, robot: Path, run: Path, words: tuple[str, ...], said: str
) -> None:
    """
    The option of the same meaning is named, where there is one.
    """
    assert run.exists()
    done = policy(*words, "--embodiment", robot)
    assert done.code in {1, 2}
    assert said in done.out + done.err
    assert None is ARGUMENT.search(done.out + done.err)
