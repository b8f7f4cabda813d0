"""``pytest --vlmcore-server URL``, and the fixture for those who write clients."""

from __future__ import annotations

import pytest
import trustme

from client_cases import certified
from kit_cases import ROBOT, hostile, serving
from vlmcore.contracts.documents import embodiment_to_json
from vlmcore.secrets import Secret
from vlmcore_robotics.testing import SERVER_CHECKS, Behaviour, PolicyProtocol

pytest_plugins = ["pytester"]

HTTP, OPENPI = PolicyProtocol.HTTP, PolicyProtocol.OPENPI
LAYOUT = """
from vlmcore_robotics.wire.observation_layout import CameraKey, ObservationLayout, StateKey

layout = ObservationLayout(
    cameras=[CameraKey(camera="front", key="observation/image")],
    state=[StateKey(key="observation/state", count=2)],
)


def broken():
    raise RuntimeError("no keys")
"""


@pytest.fixture
def run(pytester: pytest.Pytester):
    """Run pytest on a server, in this process."""
    pytester.makefile(".json", robot=embodiment_to_json(ROBOT))
    pytester.makepyfile(keys=LAYOUT)

    def pytest_on(url: str, *words: str) -> pytest.RunResult:
        return pytester.runpytest_inprocess(
            "-p", "no:cacheprovider", "--vlmcore-server", url, *words
        )

    return pytest_on


ROBOT_FILE = ("--vlmcore-embodiment", "robot.json")


def test_each_promise_is_a_test(run, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    With a token from the environment, which is in no report.
    """
    monkeypatch.setenv("ARM_TOKEN", "sk-123456")
    with serving(HTTP, token=Secret("sk-123456")) as url:
        result = run(url, *ROBOT_FILE, "--vlmcore-token-env", "ARM_TOKEN", "--vlmcore-strict", "-v")
    outcomes = result.parseoutcomes()
    assert 0 == result.ret
    assert len(SERVER_CHECKS) == sum(outcomes.values())
    assert len(SERVER_CHECKS) - 2 <= outcomes["passed"]
    result.stdout.fnmatch_lines(["*::garbage is refused PASSED*"])
    result.stdout.no_fnmatch_line("*sk-123456*")


def test_a_layout_is_imported(run) -> None:
    """
    Of one's own module, from where pytest was started.
    """
    with serving(OPENPI) as url:
        result = run(url, *ROBOT_FILE, "--vlmcore-layout", "keys:layout", "-k", "call and actions")
    result.assert_outcomes(passed=1, deselected=len(SERVER_CHECKS) - 1)


def test_what_fails_says_why_and_the_rest_is_not_tried(run) -> None:
    """
    Without a traceback of the kit.
    """
    with hostile(HTTP, Behaviour.WITHOUT_STEPS) as server:
        result = run(server.url, *ROBOT_FILE)
    result.assert_outcomes(passed=1, failed=1, skipped=len(SERVER_CHECKS) - 2)
    result.stdout.fnmatch_lines(["*PolicyProtocolError: server: *"])
    result.stdout.no_fnmatch_line("*_server_promises.py*")


def test_a_risk_is_listed_and_fails_where_that_is_asked_for(run) -> None:
    """
    So that a team can begin with a stock server.
    """
    words = (*ROBOT_FILE, "--vlmcore-layout", "keys:layout", "-k", "finite and actions")
    with hostile(OPENPI, Behaviour.NOT_FINITE) as server:
        lenient, strict = run(server.url, *words), run(server.url, *words, "--vlmcore-strict")
    lenient.stdout.fnmatch_lines(["*: risk: its actions are finite: *"])
    assert 1 == lenient.parseoutcomes()["passed"]
    assert 1 == strict.parseoutcomes()["failed"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("ws://127.0.0.1:9",), "*got no --vlmcore-embodiment that it is for*"),
        (("127.0.0.1:9", *ROBOT_FILE), "*expected an address with ws://, *"),
        (("ws://127.0.0.1:9", *ROBOT_FILE), "*layout: got NoneType, expected ObservationLayout*"),
        (("wss://policies.example", *ROBOT_FILE, "--vlmcore-layout", "keys:layout"), "*remote*"),
        (("ws://127.0.0.1:9", *ROBOT_FILE, "--vlmcore-layout", "a b"), "*expected aloha, *"),
        (("ws://127.0.0.1:9", *ROBOT_FILE, "--vlmcore-layout", "keys:broken"), "*no keys*"),
        (("ws://127.0.0.1:9", *ROBOT_FILE, "--vlmcore-layout", "keys:none"), "*has no*none*"),
        (("http://127.0.0.1:9", *ROBOT_FILE, "--vlmcore-timeout", "0"), "*timeout_s: got 0*"),
    ],
)
def test_what_is_wrong_with_the_options_is_said_in_one_line(run, words, complaint: str) -> None:
    """
    As pytest says it of its own.
    """
    result = run(*words)
    assert pytest.ExitCode.USAGE_ERROR == result.ret
    result.stderr.fnmatch_lines([f"ERROR: {complaint}"])


def test_the_fixture_starts_servers_that_misbehave_and_stops_them(
    pytester: pytest.Pytester,
) -> None:
    """
    For the tests of a client that somebody else wrote.
    """
    pytester.makepyfile(
        """
        import socket

        from vlmcore.contracts.presets import find_embodiment
        from vlmcore_robotics.testing import Behaviour, PolicyProtocol

        urls = []


        def dial(url):
            host, port = url.removeprefix("http://").split(":")
            return socket.create_connection((host, int(port)))


        def test_hang_up(vlmcore_hostile_server):
            robot = find_embodiment("aloha_bimanual_template")
            server = vlmcore_hostile_server(
                PolicyProtocol.HTTP, Behaviour.HANGS_UP_AT_ONCE, embodiment=robot
            )
            urls.append(server.url)
            with dial(server.url) as connection:
                assert connection.recv(1) == b""


        def test_it_is_gone():
            try:
                dial(urls[0])
            except ConnectionRefusedError:
                return
            raise AssertionError
        """
    )
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)


def test_a_server_with_a_certificate_of_an_authority_of_ones_own_is_held_to_all(
    run, pytester: pytest.Pytester
) -> None:
    """
    The file is found from where pytest was started.
    """
    authority = trustme.CA()
    authority.cert_pem.write_to_path(pytester.path / "authority.pem")
    words = (*ROBOT_FILE, "-k", "call and actions")
    with serving(HTTP, tls=certified(authority, "127.0.0.1")) as url:
        run(url, *words, "--vlmcore-ca", "authority.pem").assert_outcomes(passed=1)
        run(url, *words).assert_outcomes(failed=1)
    result = run("https://localhost:9", *words, "--vlmcore-ca", "none.pem")
    result.stderr.fnmatch_lines(["*ca: got *none.pem*expected certificates in PEM*"])
