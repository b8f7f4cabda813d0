"""``pytest --vlmcore-policy module:factory``: a test for each promise, without a test file."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from vlmcore.contracts.documents import embodiment_to_json
from vlmcore.contracts.presets import find_embodiment
from vlmcore.testing.policy_checks import POLICY_CHECKS

pytest_plugins = ["pytester"]

ALOHA = "aloha_bimanual_template"
WITHOUT_A_ROBOT = len(POLICY_CHECKS) - 1
REACH = f"""
from vlmcore.contracts.presets import find_embodiment
from vlmcore.policy.interface import PolicyInfo
from vlmcore.testing import AsyncScriptedPolicy, ScriptedPolicy

robot = find_embodiment({ALOHA!r})
info = PolicyInfo(
    name="still",
    action_names=robot.actions.names,
    state_names=robot.state_names,
    cameras=robot.cameras,
)
answers = [[[0.0] * 14]]


def make():
    return ScriptedPolicy(answers, info=info)


async def connect():
    return AsyncScriptedPolicy(answers, info=info)


class Factories:
    make = staticmethod(make)


def silent():
    info = PolicyInfo(name="silent", action_names=robot.actions.names)
    return ScriptedPolicy(answers, info=info)


def fails():
    raise RuntimeError("no accelerator")


def leaves():
    raise SystemExit(3)


def nothing():
    return None


class Broken:
    def __init__(self):
        self.inner = make()
        self.info = info

    def infer(self, observation):
        if not observation.instruction.isascii():
            raise KeyError(observation.instruction)
        return self.inner.infer(observation)

    def reset(self):
        self.inner.reset()

    def close(self):
        self.inner.close()


class Jumping(Broken):
    def infer(self, observation):
        chunk = self.inner.infer(observation)
        return type(chunk)(
            values=[[9.0] * 14], names=chunk.names, source="still",
            observed_at_s=chunk.observed_at_s,
        )


number = 3
"""


@pytest.fixture
def run(pytester: pytest.Pytester):
    """
    Run pytest in this process, in a folder with the policies of ``reach.py``.
    """
    pytester.makepyfile(reach=REACH)

    def run(*words: str) -> pytest.RunResult:
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", *words)

    return run


@pytest.mark.parametrize("factory", ["make", "connect", "Factories.make"])
def test_each_promise_is_a_test(run, factory: str) -> None:
    """
    Of a policy or an async one, made by whatever can be called.
    """
    run("--vlmcore-policy", f"reach:{factory}").assert_outcomes(passed=WITHOUT_A_ROBOT)


def test_the_tests_have_the_names_of_the_promises(run) -> None:
    """
    Below the name of the factory; they are counted and can be chosen.
    """
    done = run("--vlmcore-policy", "reach:make", "--collect-only", "-q", "-k", "closing")

    assert 0 == done.ret
    done.stdout.fnmatch_lines(
        ["reach:make::closing twice is no error", f"1/{WITHOUT_A_ROBOT} tests collected*"]
    )


def test_tests_of_the_folder_run_beside_them_and_the_marker_tells_them_apart(
    run, pytester: pytest.Pytester
) -> None:
    """
    ``-m vlmcore_policy`` chooses the promises; the marker is known with strict markers, too.
    """
    pytester.makepyfile(test_mine="def test_mine(): pass")
    policy = ("--vlmcore-policy", "reach:make", "--strict-markers")

    run(*policy).assert_outcomes(passed=WITHOUT_A_ROBOT + 1)
    run(*policy, "-m", "vlmcore_policy").assert_outcomes(passed=WITHOUT_A_ROBOT, deselected=1)


def test_with_a_robot_there_are_three_more(run) -> None:
    """
    Whether the policy is for the robot, what the gate finds, and random observations.
    """
    words = ("--vlmcore-policy", "reach:silent", "--vlmcore-embodiment", ALOHA)

    done = run(*words, "--vlmcore-examples", "3")

    done.assert_outcomes(passed=WITHOUT_A_ROBOT + 3)
    done.stdout.fnmatch_lines(["reach:silent: the gate finds: silent, 1 x 14 values: all kept"])
    run(*words, "--vlmcore-examples", "0").assert_outcomes(passed=WITHOUT_A_ROBOT + 2)


def test_what_the_gate_finds_is_told_and_fails_nothing(run) -> None:
    """
    A policy only proposes.
    """
    done = run(
        "--vlmcore-policy", "reach:Jumping", "--vlmcore-embodiment", ALOHA, "-k", "gate or closed"
    )

    done.assert_outcomes(passed=2, deselected=WITHOUT_A_ROBOT + 1)
    done.stdout.fnmatch_lines(["reach:Jumping: the gate finds: still, 1 x 14 values: 14 out of *"])


def test_a_robot_may_be_a_document(run, pytester: pytest.Pytester) -> None:
    """
    In a file, beside where pytest was started.
    """
    (pytester.path / "robot.json").write_text(embodiment_to_json(find_embodiment(ALOHA)))

    done = run("--vlmcore-policy", "reach:make", "--vlmcore-embodiment", "robot.json", "-k", "fits")

    done.assert_outcomes(passed=1, deselected=WITHOUT_A_ROBOT + 2)


def test_a_failure_says_what_was_broken_and_where(run) -> None:
    """
    The sentence, the reason, and the traceback of what the policy raised; nothing of pytest's own.
    """
    done = run("--vlmcore-policy", "reach:Broken")

    done.assert_outcomes(passed=WITHOUT_A_ROBOT - 1, failed=1)
    line = 1 + REACH.splitlines().index("            raise KeyError(observation.instruction)")
    done.stdout.fnmatch_lines(
        [
            "* odd observations are answered or refused *",
            f"a task in other scripts: infer raised KeyError: 'Nimm *(reach.py:{line - 1})",
            "Traceback (most recent call last):",
            "FAILED reach:Broken::odd observations are answered or refused*",
        ]
    )
    done.stdout.no_fnmatch_line("*policy_checks.py*")


def test_the_same_numbers_are_asked_for_only_if_wanted(run, pytester: pytest.Pytester) -> None:
    """
    Policies that sample are policies.
    """
    pytester.makepyfile(
        sampling="""
        import numpy as np
        from reach import info, ScriptedPolicy

        def make():
            numbers = np.random.default_rng()
            return ScriptedPolicy(lambda _: numbers.uniform(size=(1, 14)), info=info)
        """
    )
    run("--vlmcore-policy", "sampling:make").assert_outcomes(passed=WITHOUT_A_ROBOT)
    run("--vlmcore-policy", "sampling:make", "--vlmcore-deterministic").assert_outcomes(
        passed=WITHOUT_A_ROBOT - 1, failed=1
    )


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["reach"], "--vlmcore-policy: got 'reach', expected module:factory"),
        (["reach:"], "--vlmcore-policy: got 'reach:', expected module:factory"),
        (["a b:c"], "--vlmcore-policy: got 'a b:c', expected module:factory"),
        (["reach.py:make"], "--vlmcore-policy: importing 'reach.py' raised ModuleNotFoundError: *"),
        (["nowhere:make"], "--vlmcore-policy: importing 'nowhere' raised ModuleNotFoundError: *"),
        (["faulty:make"], "--vlmcore-policy: importing 'faulty' raised ValueError (faulty.py:1)"),
        (["exits:make"], "--vlmcore-policy: importing 'exits' raised SystemExit: 3 (exits.py:1)"),
        (["reach:mak"], "--vlmcore-policy: 'reach' has no 'mak'; did you mean 'make'?"),
        (["reach:number"], "--vlmcore-policy: 'reach:number' is of type int, expected a function"),
        (
            ["reach:fails"],
            "--vlmcore-policy: 'reach:fails': making it raised RuntimeError: no accelerator *",
        ),
        (
            ["reach:leaves"],
            "--vlmcore-policy: 'reach:leaves': making it raised SystemExit: 3 (reach.py:*)",
        ),
        (
            ["reach:make", "--vlmcore-policy", "reach:silent"],
            "--vlmcore-policy: got reach:make and reach:silent, expected one: run pytest for each",
        ),
        (["reach:nothing"], "--vlmcore-policy: 'reach:nothing': info raised AttributeError: *"),
        (
            ["reach:silent"],
            "--vlmcore-policy: the info of 'silent' does not say both state_names and cameras, *",
        ),
        (
            ["reach:make", "--vlmcore-embodiment", "aloha"],
            "--vlmcore-embodiment: got 'aloha', did you mean 'ALOHA bimanual template' *document)",
        ),
        (
            ["reach:make", "--vlmcore-embodiment", "nope.json"],
            "--vlmcore-embodiment: nope.json: does not exist",
        ),
        (
            ["reach:make", "--vlmcore-embodiment", "faulty.py"],
            "--vlmcore-embodiment: *JSON*",
        ),
        (["reach:make", "--vlmcore-examples", "-1"], "--vlmcore-examples: got -1, expected 0 or *"),
        (["reach:make", "--vlmcore-patience", "0"], "--vlmcore-patience: seconds: got 0.0, *"),
    ],
)
def test_an_option_that_is_wrong_is_told_in_one_line(
    run, pytester: pytest.Pytester, words: list[str], problem: str
) -> None:
    """
    As pytest tells of its own options: nothing is run.
    """
    pytester.makepyfile(faulty="raise ValueError", exits="raise SystemExit(3)")

    done = run("--vlmcore-policy", *words)

    assert pytest.ExitCode.USAGE_ERROR == done.ret
    assert "" == done.stdout.str().strip()
    lines = [line for line in done.stderr.lines if line.strip()]
    assert 1 == len(lines)
    done.stderr.fnmatch_lines([f"ERROR: {problem.replace('[', '[[]')}"])


def test_a_robot_without_a_policy_is_told(run) -> None:
    """
    It would do nothing.
    """
    done = run("--vlmcore-embodiment", ALOHA)

    assert pytest.ExitCode.USAGE_ERROR == done.ret
    done.stderr.fnmatch_lines(["ERROR: --vlmcore-embodiment: got no --vlmcore-policy or *"])


def test_two_workers_share_the_tests(run) -> None:
    """
    Each of them finds the policy in the folder where pytest was started.
    """
    done = run("--vlmcore-policy", "reach:make", "-n", "2")

    done.assert_outcomes(passed=WITHOUT_A_ROBOT)


def test_a_run_that_does_not_ask_loads_nothing_of_it(pytester: pytest.Pytester) -> None:
    """
    Everybody who has vlmcore installed pays for the plugin in each run of pytest.
    """
    pytester.makepyfile(
        test_loaded="""
        import json, sys

        def test_loaded():
            names = {name.partition(".")[0] for name in sys.modules}
            print(json.dumps(sorted(names & {"_vlmcore_pytest", "vlmcore", "numpy", "attrs"})))
        """
    )

    done = pytester.runpytest_subprocess("-q", "-s", "-p", "no:cacheprovider")

    assert 0 == done.ret
    assert ["_vlmcore_pytest"] == json.loads(done.outlines[0].rstrip("."))


def test_the_options_themselves_load_pytest_only() -> None:
    """
    Hypothesis, which comes with the kit, is not loaded either.
    """
    program = (
        "import pytest, sys; before = set(sys.modules); import _vlmcore_pytest; "
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )

    assert "['_vlmcore_pytest']" == done.stdout.strip()


def test_pytest_finds_the_plugin_by_its_entry_point() -> None:
    """
    Under the name with which it can be switched off: ``-p no:vlmcore``.
    """
    (found,) = (point for point in entry_points(group="pytest11") if point.name == "vlmcore")
    assert "_vlmcore_pytest" == found.value
