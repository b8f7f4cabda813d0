"""Arguments of clients, servers and recorders: what is not as described is told at once."""

from __future__ import annotations

import inspect
from functools import partial

import pytest

from vlmcore.contracts.presets import find_embodiment
from vlmcore.endpoint import Endpoint
from vlmcore.errors import ContractError, VlmcoreError
from vlmcore.policy.interface import PolicyInfo
from vlmcore.rollout.episode_frames import encode_frames
from vlmcore.rollout.episode_reader import EpisodeReader
from vlmcore.rollout.episode_writer import EpisodeWriter
from vlmcore.rollout.episodes import EpisodeHeader
from vlmcore.rollout.rerun_export import export_to_rerun
from vlmcore.testing import ScriptedPolicy, check_policy, example_observation
from vlmcore_robotics.adapters.lerobot import LeRobotPolicy
from vlmcore_robotics.clients import (
    AsyncHttpPolicy,
    AsyncWebSocketPolicy,
    AsyncZmqPolicy,
    HttpPolicy,
    WebSocketPolicy,
    ZmqPolicy,
)
from vlmcore_robotics.servers import GrootServer, HttpPolicyServer, OpenPIServer, PolicyRuntime
from vlmcore_robotics.testing import PolicyProtocol, check_server
from vlmcore_robotics.wire.groot_layout import ActionStream, GrootLayout, StateSlice, VideoKey
from vlmcore_robotics.wire.layouts import aloha_layout

ROBOT = find_embodiment("aloha_bimanual_template")
SEEN = example_observation(ROBOT)
INFO = PolicyInfo(
    name="still",
    action_names=ROBOT.actions.names,
    state_names=ROBOT.state_names,
    cameras=ROBOT.cameras,
    horizon=1,
    rate_hz=ROBOT.actions.rate_hz,
)
GROOT = GrootLayout(
    video=[VideoKey(key=name, camera=name) for name in ROBOT.camera_names],
    state=[StateSlice(key="arm", start=0, end=len(ROBOT.state_names))],
    action=[ActionStream(key="arm", names=ROBOT.actions.names)],
    language="task",
)
LAYOUTS = {
    HttpPolicy: {},
    AsyncHttpPolicy: {},
    WebSocketPolicy: {"layout": aloha_layout()},
    AsyncWebSocketPolicy: {"layout": aloha_layout()},
    ZmqPolicy: {"layout": GROOT},
    AsyncZmqPolicy: {"layout": GROOT},
    HttpPolicyServer: {},
    OpenPIServer: {"layout": aloha_layout()},
    GrootServer: {"layout": GROOT},
}
CLIENTS = tuple(kind for kind in LAYOUTS if "Server" not in kind.__name__)
SERVERS = tuple(kind for kind in LAYOUTS if "Server" in kind.__name__)


@pytest.fixture(scope="module")
def runtime():
    with PolicyRuntime(ScriptedPolicy([[[0.0] * 14]], info=INFO)) as runtime:
        yield runtime


def make(kind, runtime, **arguments):
    """Make a client or a server of *kind*."""
    if kind in CLIENTS:
        return kind("localhost:9", **{"embodiment": ROBOT, **LAYOUTS[kind], **arguments})
    return kind(runtime, **{"port": 0, **LAYOUTS[kind], **arguments})


class Odd:
    """What no argument is."""


@pytest.mark.parametrize("wrong", [Odd(), object, 1j], ids=["object", "class", "complex"])
@pytest.mark.parametrize("kind", LAYOUTS, ids=lambda kind: kind.__name__)
def test_each_argument_of_each_client_and_server_is_looked_at(kind, wrong, runtime) -> None:
    """
    What is no such argument is an error of vlmcore when the object is made, not one of Python when
    a robot runs.
    """
    names = [name for name in inspect.signature(kind).parameters if name not in PLACES]
    taken = []
    for name in names:
        try:
            make(kind, runtime, **{name: wrong})
        except VlmcoreError:
            continue
        taken.append(name)
    assert [] == taken


PLACES = ("endpoint", "runtime")  # these are first, and tried below


@pytest.mark.parametrize("kind", LAYOUTS, ids=lambda kind: kind.__name__)
def test_what_stands_first_is_looked_at_too(kind) -> None:
    """
    An endpoint is a text and a runtime is a runtime.
    """
    arguments = {"embodiment": ROBOT} if kind in CLIENTS else {}
    with pytest.raises(VlmcoreError):
        kind(Odd(), **LAYOUTS[kind], **arguments)


@pytest.mark.parametrize("kind", [HttpPolicyServer, OpenPIServer], ids=lambda kind: kind.__name__)
def test_one_name_of_a_host_is_not_taken_for_as_many_as_it_has_letters(kind, runtime) -> None:
    """
    ``hosts="robot"`` would let in those who call the server ``r``, and not the gateway.
    """
    with pytest.raises(ContractError, match=r"^hosts: got str, expected a tuple of names"):
        make(kind, runtime, hosts="robot")


def _exported(folder, *, overwrite):
    path = folder / "whole.jsonl"
    EpisodeWriter(path, EpisodeHeader(embodiment=ROBOT), overwrite=True).close()
    export_to_rerun(EpisodeReader(path), folder / "run.rrd", overwrite=overwrite)


def _switches(runtime, folder):
    """List what has a switch, as something to call with it."""
    parse = partial(Endpoint.parse, "localhost:1", schemes=["ws"], default_scheme="ws")
    yield "allow_remote", parse
    for kind in LAYOUTS:
        for name, parameter in inspect.signature(kind).parameters.items():
            if parameter.annotation == "bool":
                yield name, partial(make, kind, runtime)
    yield "download", partial(LeRobotPolicy.from_pretrained, folder)
    writer = partial(EpisodeWriter, folder / "run.jsonl", EpisodeHeader(embodiment=ROBOT))
    yield "overwrite", writer
    yield "overwrite", partial(_exported, folder.parent)
    yield "sync", writer
    yield "newest_only", partial(encode_frames, SEEN)
    still = partial(ScriptedPolicy, [[[0.0] * 14]], info=INFO)
    yield "deterministic", partial(check_policy, still, SEEN)
    server = partial(
        check_server, "localhost:9", protocol=PolicyProtocol.HTTP, embodiment=ROBOT, checks=()
    )
    yield "allow_remote", server
    yield "deterministic", server


def test_no_switch_is_turned_on_by_a_text_that_says_no(runtime, tmp_path) -> None:
    """
    ``allow_remote="no"`` comes from a setting, and would open what it was to keep shut.
    """
    for name, call in _switches(runtime, tmp_path):
        with pytest.raises(ContractError, match=f"^{name}: got 'no', expected True or False$"):
            call(**{name: "no"})
    assert [] == list(tmp_path.iterdir())
