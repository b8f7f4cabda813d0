"""Nodes that say which robot it is, and which policies there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vlmcore_comfy.declaring import Node, Output, choice, node, number, text
from vlmcore_comfy.sockets import EMBODIMENT

if TYPE_CHECKING:
    from vlmcore.contracts.embodiment import Embodiment

__all__ = ["NODES", "embodiment_profile", "model_catalog"]

_PRESETS = (
    "Generic 7-DoF joint + gripper",
    "Generic EEF delta + gripper",
    "LeRobot SO-100 / SO-101 template",
    "LIBERO Panda simulation template",
    "ALOHA bimanual template",
)
_MODELS = (
    "SmolVLA 450M — fast consumer hardware",
    "X-VLA 0.9B — cross-embodiment",
    "π0 base — generalist VLA",
    "π0-FAST — tokenized fast actions",
    "π0.5 base — open-world generalization",
    "GR00T N1.7 3B — cross-embodiment",
    "WALL-OSS — mixture-of-experts VLA",
    "MolmoAct2 — action reasoning",
    "VLA-JEPA — predictive world representation",
    "LingBot-VA — video-action model",
    "FastWAM — world action model",
    "EO-1 — efficient VLA architecture",
    "EVO-1 — embodied multimodal architecture",
    "OpenVLA-OFT 7B — optimized OpenVLA",
    "Octo small 27M — legacy lightweight research",
)
_LISTED = "a JSON list, one entry for each; blank keeps the preset's"


@node(
    "VLAEmbodimentProfile",
    title="VLA Embodiment Profile",
    category="Robotics/Schemas",
    description="Says which robot it is: what it reports and accepts, and within which bounds. "
    "The presets are templates, certified by nobody.",
    inputs=(
        choice("preset", _PRESETS, "Generic 7-DoF joint + gripper"),
        number("control_hz", 0.0, 0.0, 10000.0, 1.0, tooltip="0 keeps the preset's rate"),
        text("state_names_json", multiline=True, tooltip=f"Names of the state: {_LISTED}"),
        text("action_names_json", multiline=True, tooltip=f"Names of the actions: {_LISTED}"),
        text("action_min_json", multiline=True, tooltip=f"The smallest values: {_LISTED}"),
        text("action_max_json", multiline=True, tooltip=f"The largest values: {_LISTED}"),
        text("max_delta_json", multiline=True, tooltip=f"The largest step of each: {_LISTED}"),
        text("camera_names_json", multiline=True, tooltip=f"Names of the cameras: {_LISTED}"),
        text("action_mode_override", tooltip="As: delta end-effector pose"),
    ),
    outputs=(
        Output(EMBODIMENT, "embodiment"),
        Output("STRING", "profile_json"),
        Output("INT", "state_dim"),
        Output("INT", "action_dim"),
    ),
)
def embodiment_profile(
    preset: str,
    control_hz: float,
    state_names_json: str,
    action_names_json: str,
    action_min_json: str,
    action_max_json: str,
    max_delta_json: str,
    camera_names_json: str,
    action_mode_override: str,
) -> tuple[Embodiment, str, int, int]:
    """Take a preset, and what is said otherwise in its place."""
    from vlmcore.contracts.documents import (
        embodiment_from_document,
        embodiment_to_document,
        embodiment_to_json,
    )
    from vlmcore.contracts.presets import find_embodiment
    from vlmcore_comfy.widgets import names_in, numbers_in

    changes = {
        "control_hz": control_hz or None,
        "state_names": names_in("state_names_json", state_names_json),
        "action_names": names_in("action_names_json", action_names_json),
        "action_min": numbers_in("action_min_json", action_min_json),
        "action_max": numbers_in("action_max_json", action_max_json),
        "max_delta_per_step": numbers_in("max_delta_json", max_delta_json),
        "camera_names": names_in("camera_names_json", camera_names_json),
        "action_mode": action_mode_override.strip() or None,
    }
    changed = {key: value for key, value in changes.items() if value is not None}
    robot = find_embodiment(preset)
    if changed:
        robot = embodiment_from_document({**embodiment_to_document(robot), **changed})
    profile = embodiment_to_json(robot)
    return robot, profile, len(robot.state_names), len(robot.actions.names)


@node(
    "VLAModelCatalog",
    title="VLA Model Catalog",
    category="Robotics",
    description="Tells what is known of a policy: its weights, what runs it, and how far it is "
    "from moving a robot. Nothing is downloaded.",
    inputs=(choice("model", _MODELS, _MODELS[0]),),
    outputs=(
        Output("STRING", "model_info_json"),
        Output("STRING", "checkpoint"),
        Output("STRING", "policy_type"),
        Output("STRING", "backend"),
    ),
)
def model_catalog(model: str) -> tuple[str, str, str, str]:
    """Look a policy up."""
    from vlmcore.contracts.json_text import write_json
    from vlmcore.policy.catalog import find_policy

    spec = find_policy(model)
    runtimes = [runtime.value for runtime in spec.runtimes]
    info = {
        "key": spec.key,
        "label": spec.label,
        "family": spec.family,
        "policy_type": spec.policy_type,
        "checkpoint": spec.checkpoint,
        "runtimes": runtimes,
        "scale": spec.scale,
        "readiness": spec.readiness.value,
        "fine_tuned_for": list(spec.fine_tuned_for),
        "url": spec.url,
    }
    return write_json(info), spec.checkpoint or "", spec.policy_type, runtimes[0]


NODES: tuple[Node[..., Any], ...] = (embodiment_profile, model_catalog)
