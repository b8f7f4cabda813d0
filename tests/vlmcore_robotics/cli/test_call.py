"""``vlmcore policy call``, on real servers of each protocol."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openpi_cases import INFO
from vlmcore.contracts.documents import action_chunk_from_json
from vlmcore.errors import PolicyError
from vlmcore.media.images import load_image
from vlmcore.testing import ScriptedPolicy

PROTOCOLS = ("openpi", "http", "groot")
SMALL = [[0.05, 0.05], [0.1, 0.1]]


def scripted(*answers: Any) -> ScriptedPolicy:
    """Make a policy that answers so."""
    return ScriptedPolicy(list(answers), info=INFO)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_server_of_each_protocol_is_asked(policy, serving, robot, protocol: str) -> None:
    """
    The address says which it is; what came is a table, and the gate has its word.
    """
    with serving(protocol, scripted(SMALL)) as url:
        done = policy("call", url, "--embodiment", robot, "--previous", "state")
    assert (0, True) == (done.code, done.out.startswith("2 steps of 2 actions in "))
    assert "  shoulder        0.05         0.1        0.05         0.1  rad\n" in done.out
    assert "safe: 2 x 2 actions of" in done.out
    assert "are a template's" in done.err


def test_json_holds_what_came_and_what_the_gate_says(policy, serving, robot) -> None:
    """
    With how long it took, and what the policy says of itself.
    """
    with serving("openpi", scripted([[0.05, math.nan], [9.0, math.inf]])) as url:
        done = policy("call", url, "--embodiment", robot, "--json", "--repeat", 2, "-q")
    assert done.code == 5
    assert [[0.05, "NaN"], [9.0, "Infinity"]] == done.document["chunk"]["actions"]
    assert done.document["report"]["safe_for_handoff"] is False
    assert (2, 2) == (done.document["policy"]["horizon"], done.document["calls"])
    assert 0 < done.document["fastest_ms"] <= done.document["median_ms"]


def test_what_is_unsafe_ends_with_5_and_is_not_written(policy, serving, robot, tmp_path) -> None:
    """
    Without the last command no target is safe.
    """
    out = tmp_path / "out.json"
    with serving("openpi") as url:
        done = policy("call", url, "--embodiment", robot, "-o", out)
    assert done.code == 5
    assert "unsafe: 2 x 2" in done.out
    assert "is not written, nothing is safe" in done.err
    assert not out.exists()


def test_what_was_made_safe_is_written_and_drawn(policy, serving, robot, tmp_path: Path) -> None:
    """
    As a chunk document and a picture.
    """
    out, png = tmp_path / "out.json", tmp_path / "out.png"
    options = ("--mode", "clamp", "--previous", "zero", "-o", out, "--plot", png)
    with serving("openpi") as url:
        done = policy("call", url, "--embodiment", robot, *options)
    assert done.code == 0
    written = action_chunk_from_json(out.read_text())
    np.testing.assert_allclose([[0.1, 0.1], [0.2, 0.2]], written.values)
    assert load_image(png).shape[2] == 3


def test_the_policy_is_shown_what_the_command_line_says(
    policy, serving, robot, tmp_path: Path
) -> None:
    """
    Pictures, a state and the task.
    """
    image = pytest.importorskip("PIL.Image")
    image.fromarray(np.full((8, 8, 3), 7, np.uint8)).save(tmp_path / "front.png")
    shown = scripted(SMALL)
    said = ("--image", f"front={tmp_path}/front.png", "--state", "elbow=0.25,shoulder=-0.5")
    with serving("openpi", shown) as url:
        policy("call", url, "--embodiment", robot, *said, "--instruction", "wave")
    (seen,) = shown.shown
    assert ([-0.5, 0.25], "wave") == (seen.state.tolist(), seen.instruction)
    assert (seen.images["front"] == 7).all()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--state", "1,2,3"), "--state: got 3 numbers, expected 2"),
        (("--state", "1,up"), "--state: got 'up', expected a number"),
        (("--image", "side=x.png"), "--image: got 'side=x.png', expected CAMERA=FILE"),
        (("--instruction", " "), "--instruction: "),
        (("--repeat", "0"), "--repeat: got 0, expected at least 1"),
        (("--timeout-s", "0"), "--timeout-s: "),
        (("--layout", "nope"), "--layout: got 'nope', expected libero, droid, aloha, plain"),
        (("--layout", "aloha"), "--layout: got 14 numbers of state"),
        (("--token-env", "NO_SUCH_VARIABLE"), "--token-env: "),
        (("--previous", "up"), "--previous: "),
    ],
)
def test_a_wrong_option_is_told_before_anything_is_asked(
    policy, robot, words: tuple[str, ...], said: str
) -> None:
    """
    With its name, and the exit code of a wrong command line.
    """
    done = policy("call", "ws://127.0.0.1:9", "--embodiment", robot, *words)
    assert done.code == 2
    assert said in done.err


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ws://user:pw@127.0.0.1:8000", "ws://"),
        ("ws://example.com:8000", "is not encrypted"),
        ("wss://example.com", "--allow-remote"),
        ("ws://127.0.0.1:1", "nothing listens there"),
    ],
)
def test_what_cannot_be_asked_ends_with_1(policy, robot, url: str, said: str) -> None:
    """
    One line says why, without passwords.
    """
    done = policy("call", url, "--embodiment", robot)
    assert done.code == 1
    assert said in done.err
    assert "pw@" not in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://127.0.0.1", "", "://", "ws:/x"])
def test_an_address_without_a_scheme_of_these_is_a_wrong_word(policy, robot, url: str) -> None:
    """
    Nobody can tell the protocol by it.
    """
    done = policy("call", url, "--embodiment", robot)
    assert done.code == 2
    assert "expected an address with ws://, wss://, http://, https://, tcp://" in done.err


def test_an_error_of_the_policy_ends_with_1(policy, serving, robot) -> None:
    """
    In its own words.
    """
    with serving("openpi", scripted(PolicyError("scripted", "it is dark"))) as url:
        done = policy("call", url, "--embodiment", robot)
    assert (1, True) == (done.code, "it is dark" in done.err)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_token_comes_from_the_environment_and_is_never_shown(
    policy, serving, robot, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    It is only sent where its variable is named.
    """
    monkeypatch.setenv("ARM_TOKEN", "s3cr3t-t0ken")
    with serving(protocol, scripted(SMALL), token="s3cr3t-t0ken") as url:
        refused = policy("call", url, "--embodiment", robot)
        done = policy(
            "call", url, "--embodiment", robot, "--token-env", "ARM_TOKEN", "--previous", "zero"
        )
    assert (1, 0) == (refused.code, done.code)
    for each in (refused, done):
        assert "s3cr3t" not in each.out + each.err


def test_a_layout_in_a_file_says_the_keys(policy, serving, robot, tmp_path: Path) -> None:
    """
    The same ones as plain here.
    """
    path = tmp_path / "layout.json"
    path.write_text(
        json.dumps(
            {
                "cameras": [{"camera": "front", "key": "observation/front"}],
                "state": [{"key": "observation/state", "count": 2}],
                "axes": "HWC",
            }
        )
    )
    with serving("openpi", scripted(SMALL)) as url:
        done = policy(
            "call", url, "--embodiment", robot, "--layout", path, "--previous", "zero", "-q"
        )
    assert done.code == 0
