"""Layouts by name or from a file: which key of a request holds which part of an observation."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs

from vlmcore.cli.commands import Terminal, told_of
from vlmcore.cli.robot_commands import read_document
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.errors import ContractError
from vlmcore_robotics.wire.groot_layout import ActionStream, GrootLayout, StateSlice, VideoKey
from vlmcore_robotics.wire.layouts import (
    aloha_layout,
    droid_layout,
    libero_layout,
    plain_groot_layout,
    plain_layout,
)
from vlmcore_robotics.wire.observation_layout import (
    CameraKey,
    ImageAxes,
    ObservationLayout,
    StateKey,
)

__all__ = ["LAYOUTS", "add_layout", "groot_layout_of", "openpi_layout_of"]

_Made = TypeVar("_Made")

#: Layouts that are known by name.
LAYOUTS: Mapping[str, Callable[[], ObservationLayout]] = {
    "libero": libero_layout,
    "droid": droid_layout,
    "aloha": aloha_layout,
}
_PLAIN = "plain"
_OF_ROBOTS = {"libero_panda_template": "libero", "aloha_bimanual_template": "aloha"}
_AXES = {axes.name.lower(): axes for axes in ImageAxes}


def add_layout(parser: argparse.ArgumentParser) -> None:
    """Add the option that says how requests are laid out."""
    names = ", ".join((*LAYOUTS, _PLAIN))
    parser.add_argument(
        "--layout",
        metavar="NAME|FILE",
        help=f"for openpi and GR00T: the keys of requests; {names}, or a JSON file (default: that "
        "of the robot, else plain)",
    )


def openpi_layout_of(word: str | None, robot: Embodiment, terminal: Terminal) -> ObservationLayout:
    """
    Find a layout of openpi.

    Raises:
        ContractError: If there is none; its field is ``--layout``, or the file.
    """
    word = word or _OF_ROBOTS.get(robot.name, _PLAIN)
    if word in LAYOUTS:
        return _fitting(LAYOUTS[word](), robot)
    if word == _PLAIN:
        layout = plain_layout(robot)
        keys = [camera.key for camera in layout.cameras] + [part.key for part in layout.state]
        said = ", ".join("/".join(key) for key in (*keys, layout.prompt))
        terminal.note(f"the keys of requests are {said}: --layout says others")
        return layout
    value = _document(word, "cameras")
    with told_of(word):
        return _fitting(_openpi(value), robot)


def groot_layout_of(word: str | None, robot: Embodiment, terminal: Terminal) -> GrootLayout:
    """
    Find a layout of GR00T.

    Raises:
        ContractError: If there is none; its field is ``--layout``, or the file.
    """
    if word is None or word == _PLAIN:
        layout = plain_groot_layout(robot)
        keys = ", ".join(video.key for video in layout.video)
        terminal.note(
            f"the modality keys are {keys}, state, action and {layout.language}: --layout says "
            "others"
        )
        return layout
    value = _document(word, "video")
    with told_of(word):
        fields = dict(value)
        for field, kind in (("video", VideoKey), ("state", StateSlice), ("action", ActionStream)):
            fields[field] = [_made(kind, each, field) for each in _listed(fields, field)]
        return _made(GrootLayout, fields, "layout")


def _fitting(layout: ObservationLayout, robot: Embodiment) -> ObservationLayout:
    """Refuse a layout that no observation of the robot can be laid out by."""
    count = len(robot.state_names)
    if layout.state_count != count:
        raise ContractError(
            "--layout",
            f"got {layout.state_count} numbers of state, expected the {count} of {robot.name!r}",
        )
    needed = [camera.camera for camera in layout.cameras if camera.required]
    missing = [name for name in needed if name not in robot.camera_names]
    if missing:
        cameras = ", ".join(robot.camera_names)
        raise ContractError(
            "--layout", f"got the cameras {missing}, expected those of {robot.name!r}: {cameras}"
        )
    return layout


def _openpi(value: Mapping[str, Any]) -> ObservationLayout:
    fields = dict(value)
    for field, kind in (("cameras", CameraKey), ("state", StateKey)):
        fields[field] = [_made(kind, each, field) for each in _listed(fields, field)]
    if "axes" in fields:
        axes = fields["axes"]
        if not isinstance(axes, str) or axes.lower() not in _AXES:
            raise ContractError("axes", f"got {axes!r:.80}, expected {' or '.join(_AXES)}")
        fields["axes"] = _AXES[axes.lower()]
    return _made(ObservationLayout, fields, "layout")


def _document(word: str, key: str) -> Mapping[str, Any]:
    if not word.lower().endswith(".json"):
        names = ", ".join((*LAYOUTS, _PLAIN))
        raise ContractError("--layout", f"got {word!r:.80}, expected {names}, or a .json file")
    value = read_document(word)
    if not isinstance(value, dict) or key not in value:
        raise ContractError(word, f"is no layout of this protocol, expected an object with {key!r}")
    return value


def _listed(fields: Mapping[str, Any], field: str) -> list[Any]:
    value = fields.get(field, [])
    if not isinstance(value, list):
        raise ContractError(field, f"got {type(value).__name__}, expected a list of objects")
    return value


def _made(kind: type[_Made], value: Any, field: str) -> _Made:
    """Make a contract of an object in a file, whose keys are the fields of the contract."""
    if not isinstance(value, dict):
        raise ContractError(field, f"got {type(value).__name__}, expected an object")
    contract: Any = kind
    needed = {each.name: each.default is attrs.NOTHING for each in attrs.fields(contract)}
    missing = [name for name, is_needed in needed.items() if is_needed and name not in value]
    if missing or value.keys() - needed.keys():
        came, known = ", ".join(map(str, value)), ", ".join(needed)
        raise ContractError(field, f"got the keys {came}, expected {known}")
    made: _Made = contract(**value)
    return made
