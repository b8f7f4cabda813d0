"""Nodes that ask a policy behind a server; connections stay open from one graph to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from vlmcore_comfy.declaring import (
    Input,
    Node,
    Output,
    boolean,
    choice,
    integer,
    node,
    number,
    socket,
    text,
)
from vlmcore_comfy.sockets import ACTIONS, OBSERVATION

if TYPE_CHECKING:
    from vlmcore.contracts.actions import ActionChunk
    from vlmcore_comfy.seeing import SeenBy

__all__ = ["NODES", "groot_policy", "http_policy", "openpi_policy"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

_NESTED = "Nested images (ALOHA)"
_LAYOUTS = ("Flat keys (DROID / LIBERO)", _NESTED)
_OUTPUTS = (Output(ACTIONS, "actions"), Output("STRING", "inference_report"))
_OBSERVATION = socket("observation", OBSERVATION)
_TIMEOUT = number("timeout_seconds", 120.0, 0.1, 600.0, 1.0)
_REMOTE = boolean(
    "allow_remote", default=False, tooltip="Let it be another machine; over HTTP, encrypted only"
)
_AGAIN = boolean(
    "ask_again",
    default=False,
    is_optional=True,
    tooltip="Ask each time that the graph is queued, also if nothing before it changed",
)


def _changes(ask_again: bool = False, **_: Any) -> Any:
    # A number that is not equal to itself runs a node again; anything else is compared.
    return float("nan") if ask_again else ""


def _policy(
    node_id: str, title: str, *inputs: Input, about: str
) -> Callable[[Callable[_P, _R]], Node[_P, _R]]:
    return node(
        node_id,
        title=f"VLA Policy — {title}",
        category="Robotics/Policies",
        description=f"{about} What it proposes is not vetted: put it to the gate.",
        inputs=(_OBSERVATION, *inputs, _AGAIN),
        outputs=_OUTPUTS,
        extras=("robotics",),
        changes=_changes,
    )


@_policy(
    "VLAHTTPPolicy",
    "Universal HTTP",
    text("endpoint", "http://127.0.0.1:8787"),
    _TIMEOUT,
    boolean("include_history", default=True, tooltip="Show all frames, or the newest only"),
    _REMOTE,
    about="Asks a policy behind a server of comfyui-vla-http-v1, as 'vlmcore policy serve' is one.",
)
async def http_policy(
    observation: SeenBy,
    endpoint: str,
    timeout_seconds: float,
    include_history: bool,
    allow_remote: bool,
    ask_again: bool = False,
) -> tuple[ActionChunk, str]:
    """Ask over HTTP."""
    from vlmcore_comfy.policy_pool import ask_policy
    from vlmcore_comfy.policy_tokens import token_for
    from vlmcore_comfy.seeing import newest, require_seen
    from vlmcore_robotics.clients import AsyncHttpPolicy

    del ask_again
    seen = require_seen("observation", observation)
    seen = seen if include_history else newest(seen)
    robot = seen.robot()

    def make() -> AsyncHttpPolicy:
        return AsyncHttpPolicy(
            endpoint,
            embodiment=robot,
            token=token_for("VLA_POLICY_TOKEN", endpoint, schemes=("http", "https")),
            timeout_s=timeout_seconds,
            allow_remote=allow_remote,
        )

    return await ask_policy(("http", endpoint, robot, timeout_seconds, allow_remote), make, seen)


@_policy(
    "VLAOpenPIWebSocketPolicy",
    "OpenPI WebSocket",
    text("endpoint", "ws://127.0.0.1:8000"),
    choice("observation_layout", _LAYOUTS, _LAYOUTS[0]),
    text("state_key", "observation/state"),
    text("prompt_key", "prompt"),
    _TIMEOUT,
    _REMOTE,
    about="Asks a policy behind a server of openpi. Cameras are sent by their names; flat, one "
    "without a slash as observation/NAME.",
)
async def openpi_policy(
    observation: SeenBy,
    endpoint: str,
    observation_layout: str,
    state_key: str,
    prompt_key: str,
    timeout_seconds: float,
    allow_remote: bool,
    ask_again: bool = False,
) -> tuple[ActionChunk, str]:
    """Ask over a WebSocket."""
    from vlmcore_comfy.policy_layouts import openpi_layout
    from vlmcore_comfy.policy_pool import ask_policy
    from vlmcore_comfy.policy_tokens import token_for
    from vlmcore_comfy.seeing import newest, require_seen
    from vlmcore_robotics.clients import AsyncWebSocketPolicy

    del ask_again
    seen = newest(require_seen("observation", observation))
    robot, is_nested = seen.robot(), observation_layout == _NESTED
    layout = openpi_layout(seen, is_nested=is_nested, state_key=state_key, prompt_key=prompt_key)

    def make() -> AsyncWebSocketPolicy:
        return AsyncWebSocketPolicy(
            endpoint,
            embodiment=robot,
            layout=layout,
            api_key=token_for("OPENPI_API_KEY", endpoint, schemes=("ws", "wss")),
            timeout_s=timeout_seconds,
            allow_remote=allow_remote,
        )

    key = ("openpi", endpoint, robot, layout, timeout_seconds, allow_remote)
    return await ask_policy(key, make, seen)


@_policy(
    "VLAGr00tZMQPolicy",
    "GR00T N1.7 ZMQ",
    text("host", "127.0.0.1"),
    integer("port", 5555, 1, 65535, 1),
    _TIMEOUT,
    _REMOTE,
    about="Asks a policy behind a server of Isaac-GR00T, of N1.5, N1.6 or N1.7. Cameras are sent "
    "by the last part of their names.",
)
async def groot_policy(
    observation: SeenBy,
    host: str,
    port: int,
    timeout_seconds: float,
    allow_remote: bool,
    ask_again: bool = False,
) -> tuple[ActionChunk, str]:
    """Ask over ZeroMQ."""
    from vlmcore_comfy.policy_pool import ask_policy
    from vlmcore_comfy.policy_tokens import token_for
    from vlmcore_comfy.seeing import require_seen
    from vlmcore_robotics.clients import AsyncZmqPolicy
    from vlmcore_robotics.wire.layouts import plain_groot_layout

    del ask_again
    seen = require_seen("observation", observation)
    robot = seen.robot()
    endpoint = f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"

    def make() -> AsyncZmqPolicy:
        return AsyncZmqPolicy(
            endpoint,
            embodiment=robot,
            layout=plain_groot_layout(robot),
            api_token=token_for("GROOT_API_TOKEN", endpoint, schemes=("tcp",)),
            timeout_s=timeout_seconds,
            allow_remote=allow_remote,
        )

    return await ask_policy(("groot", endpoint, robot, timeout_seconds, allow_remote), make, seen)


NODES: tuple[Node[..., Any], ...] = (http_policy, openpi_policy, groot_policy)
