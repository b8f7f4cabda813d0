"""The observation that a policy is shown from the command line."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import attrs

from vlmcore._arrays import UInt8Array
from vlmcore.cli.robot_commands import ImageSource, read_document
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation, check_fits, state_from
from vlmcore.errors import ContractError

__all__ = ["add_observation", "observation_from"]


def add_observation(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what a policy is shown."""
    group = parser.add_argument_group("observation, an example unless something is said")
    group.add_argument(
        "--image",
        action="append",
        default=[],
        metavar="CAMERA=FILE",
        help="what a camera shows; for each camera, or for none",
    )
    group.add_argument(
        "--state",
        metavar="NUMBERS|FILE",
        help="numbers in order, name=number,..., or a JSON file with a list or an object",
    )
    group.add_argument("--instruction", metavar="TEXT", help="the task in words")


def observation_from(arguments: argparse.Namespace, robot: Embodiment) -> Observation:
    """
    Make the observation; its time is now.

    Raises:
        ContractError: If it is none of the robot; its field is the option, or a file.
        MediaError: If an image cannot be read.
        MissingDependencyError: If images are named, and Pillow is not installed.
    """
    from vlmcore.testing.example_observations import example_observation  # noqa: PLC0415

    seen = attrs.evolve(example_observation(robot), captured_at_s=time.monotonic())
    if arguments.instruction is not None:
        seen = _changed(seen, "--instruction", instruction=arguments.instruction)
    if arguments.state is not None:
        state = _state(arguments.state, robot)
        seen = _changed(seen, "--state", state=state)
    if arguments.image:
        seen = _changed(seen, "--image", images=_images(arguments.image, robot))
    try:
        check_fits(seen, robot)
    except ContractError as error:
        raise ContractError("--image", str(error)) from None
    return seen


def _changed(seen: Observation, option: str, **fields: Any) -> Observation:
    try:
        return attrs.evolve(seen, **fields)
    except ContractError as error:
        raise ContractError(option, error.problem) from None


def _state(word: str, robot: Embodiment) -> object:
    said: object
    if word.lower().endswith(".json"):
        said = read_document(word)
    elif "=" in word:
        pairs = [part.rpartition("=") for part in word.split(",")]
        said = {name.strip(): _number(number) for name, _, number in pairs}
    else:
        said = [_number(part) for part in word.split(",")]
    try:
        return state_from(robot.state_names, said)
    except ContractError as error:
        raise ContractError("--state", error.problem) from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ContractError("--state", f"got {text!r:.80}, expected a number") from None


def _images(words: Sequence[str], robot: Embodiment) -> dict[str, UInt8Array]:
    found: dict[str, UInt8Array] = {}
    for word in words:
        camera, equals, path = word.partition("=")
        if not equals or camera not in robot.camera_names or camera in found:
            cameras = ", ".join(robot.camera_names)
            raise ContractError(
                "--image", f"got {word!r:.80}, expected CAMERA=FILE, each once: {cameras}"
            )
        found[camera] = ImageSource(path).load().pixels
    return found
