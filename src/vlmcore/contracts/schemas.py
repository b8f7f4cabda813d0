"""The JSON documents, key by key: what is read, what is written, and the JSON Schema of each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import islice
from typing import Any

import attrs

from vlmcore._arguments import shown
from vlmcore.contracts.embodiment import LimitsSource, Reference
from vlmcore.contracts.faults import Faults
from vlmcore.contracts.rotations import RotationForm
from vlmcore.contracts.shapes import (
    Field,
    JsonObject,
    ListOf,
    MapOf,
    Number,
    Record,
    Text,
    Whole,
    path_of,
)
from vlmcore.limits import ContractLimits, DocumentLimits

__all__ = [
    "ACTION_CHUNK",
    "ACTION_STEP",
    "DOCUMENTS",
    "EMBODIMENT",
    "OBSERVATION_SUMMARY",
    "DocumentKind",
]

_LIMITS = ContractLimits()
_VERSION = 1


@attrs.frozen(kw_only=True)
class DocumentKind:
    """
    One kind of document.

    Attributes:
        name: As ``"robot-embodiment"``.
        title: What it holds, in a few words.
        keys: Its keys in the order of writing, ``schema`` and ``version`` not counted.
        version: Of the schema.
    """

    name: str
    title: str
    keys: Mapping[str, Field] = attrs.field(hash=False)
    version: int = _VERSION

    @property
    def schema_id(self) -> str:
        """What such a document says under ``schema``."""
        return f"comfyui-vlm/{self.name}"

    def header(self) -> dict[str, Any]:
        """Make the first keys of a document that is written."""
        return {"schema": self.schema_id, "version": self.version}

    def check(self, value: Any) -> dict[str, Any]:
        """
        Check what was read: the right document, every key known, every value of its type.

        Args:
            value: What `vlmcore.contracts.json_text.read_json` gave.

        Returns:
            The keys and their values, older names replaced by today's.

        Raises:
            DocumentError: If there are faults. A missing ``schema`` or ``version`` is none.
        """
        faults = Faults(self.name)
        data = self.read(value, faults)
        faults.raise_any()
        return data

    def read(self, value: Any, faults: Faults) -> dict[str, Any]:
        """
        Check what was read, and go on with what is sound, to find what else is wrong.

        Args:
            value: What `vlmcore.contracts.json_text.read_json` gave.
            faults: Is given what is wrong.

        Returns:
            As `check`, without the keys that have faults.

        Raises:
            DocumentError: If it is another document altogether, or has more faults than are listed.
        """
        if not isinstance(value, dict):
            faults.add("$", f"got {type(value).__name__}, expected an object")
        else:
            said, version = value.get("schema", self.schema_id), value.get("version", self.version)
            if said != self.schema_id:
                faults.add("$.schema", f"got {shown(said)}, expected {self.schema_id!r}")
            if type(version) is not int or version != self.version:
                faults.add("$.version", f"got {shown(version)}, expected {self.version}")
        faults.raise_any()  # another document: what else is wrong with it is no news
        most = DocumentLimits().max_faults
        found = list(islice(self._record().faults(value, "$"), most))
        for path, problem in found:
            faults.add(path, problem)
        if len(found) == most:
            faults.raise_any()
        broken = {path for path, _ in found}
        names = {field.alias: key for key, field in self.keys.items() if field.alias is not None}
        return {
            names.get(key, key): each
            for key, each in value.items()
            if isinstance(key, str) and not any(_is_in(path, path_of("$", key)) for path in broken)
        }

    def json_schema(self) -> dict[str, Any]:
        """Say what such a document is as JSON Schema, draft 2020-12."""
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": f"{self.schema_id}, version {self.version}",
            "description": self.title,
            **self._record().schema(),
        }

    def _record(self) -> Record:
        return Record(
            fields={
                "schema": Field(
                    Text(one_of=(self.schema_id,)), "What the document is.", optional=True
                ),
                "version": Field(
                    Whole(smallest=self.version, largest=self.version),
                    "Of the schema.",
                    optional=True,
                ),
                **self.keys,
            }
        )


def _is_in(path: str, of: str) -> bool:
    """Say whether *path* leads to what stands at *of*, or into it."""
    return path.startswith(of) and path[len(of) :][:1] in ("", ".", "[")


def _members(kind: type[Reference | LimitsSource | RotationForm]) -> Text:
    return Text(one_of=tuple(member.value for member in kind))


def _by_action(item: Number | Text | ListOf, meaning: str) -> Field:
    return Field(MapOf(item=item, most=_LIMITS.max_actions), meaning, optional=True)


_NAME = Text(longest=_LIMITS.max_name_characters)
_ACTION_NAMES = ListOf(item=_NAME, fewest=1, most=_LIMITS.max_actions)
_ACTION_NUMBERS = ListOf(item=Number(), fewest=1, most=_LIMITS.max_actions)
_ACTION_STEPS = ListOf(item=Number(positive=True), fewest=1, most=_LIMITS.max_actions)
_STATE = ListOf(item=Number(), fewest=1, most=_LIMITS.max_state)
_ROTATION = Record(
    fields={
        "name": Field(_NAME, "Of the rotation."),
        "form": Field(_members(RotationForm), "How it is written in numbers."),
        "actions": Field(
            ListOf(item=_NAME, fewest=3, most=6), "Its numbers, side by side in action_names."
        ),
        "max_step_rad": Field(
            Number(positive=True, largest=math.pi),
            "The most that it may turn from one control step to the next.",
            optional=True,
        ),
        "max_rate_rad_s": Field(
            Number(positive=True),
            "The same for each second; one of the two is there.",
            optional=True,
        ),
    }
)
_SIDE = Whole(smallest=1, largest=_LIMITS.max_frame_pixels)

EMBODIMENT = DocumentKind(
    name="robot-embodiment",
    title="What one robot reports and accepts.",
    keys={
        "name": Field(_NAME, "Of the robot or of the template."),
        "state_names": Field(
            ListOf(item=_NAME, fewest=1, most=_LIMITS.max_state),
            "What the numbers of a state are, in their order.",
        ),
        "action_names": Field(_ACTION_NAMES, "What the numbers of an action are, in order."),
        "action_min": Field(_ACTION_NUMBERS, "The smallest value of each action."),
        "action_max": Field(_ACTION_NUMBERS, "The largest value of each action."),
        "max_delta_per_step": Field(
            _ACTION_STEPS,
            "The most that each action may change from one control step to the next.",
            alias="max_delta",
        ),
        "control_hz": Field(
            Number(positive=True, largest=_LIMITS.max_rate_hz), "Control steps a second."
        ),
        "action_mode": Field(
            Text(blank=True, longest=_LIMITS.max_name_characters),
            "The way of control. The word 'delta' makes every action but grippers a change, "
            "'velocity' a rate, unless action_references says otherwise; beside words as "
            "'position', 'limit' or 'not' they are refused without it.",
        ),
        "camera_names": Field(
            ListOf(item=_NAME, fewest=1, most=_LIMITS.max_cameras), "What a policy sees through."
        ),
        "notes": Field(
            Text(blank=True, longest=_LIMITS.max_notes_characters), "For people.", optional=True
        ),
        "limits_source": Field(
            _members(LimitsSource),
            "Where the bounds come from; a template if missing.",
            optional=True,
        ),
        "action_units": _by_action(_NAME, "The unit of an action, where it has one."),
        "action_references": _by_action(
            _members(Reference), "What the numbers of an action refer to."
        ),
        "action_max_rates": _by_action(
            Number(positive=True), "A bound for each second, from which that of a step is made."
        ),
        "action_periods": _by_action(
            Number(positive=True), "One turn of a rotation without end stops."
        ),
        "action_levels": _by_action(
            ListOf(item=Number(), fewest=2, most=_LIMITS.max_levels),
            "The only values of an action, ascending.",
        ),
        "action_position_min": _by_action(
            Number(),
            "The smallest position that the changes, rates or offsets of an action may lead to.",
        ),
        "action_position_max": _by_action(Number(), "The largest."),
        "action_steps_unbounded": Field(
            ListOf(item=_NAME, fewest=0, most=_LIMITS.max_actions),
            "Actions with levels that have no bound of a step.",
            optional=True,
        ),
        "action_rotations": Field(
            ListOf(item=_ROTATION, fewest=0, most=_LIMITS.max_actions),
            "Actions that are one rotation in space together; they have no steps of their own.",
            optional=True,
        ),
        "camera_sizes": Field(
            MapOf(item=ListOf(item=_SIDE, fewest=2, most=2), most=_LIMITS.max_cameras),
            "Height and width of the frames of a camera, in pixels.",
            optional=True,
        ),
    },
)

OBSERVATION_SUMMARY = DocumentKind(
    name="robot-observation",
    title="What a policy was shown, without the pixels.",
    keys={
        "task": Field(Text(longest=_LIMITS.max_task_characters), "The instruction."),
        "state": Field(_STATE, "What the robot reported."),
        "timestamp": Field(Number(), "Monotonic clock at the newest frame, in seconds."),
        "history_fps": Field(Number(positive=True), "Frames a second."),
        "cameras": Field(
            MapOf(
                item=Record(
                    fields={
                        "frames": Field(
                            Whole(smallest=1, largest=_LIMITS.max_frames), "How many frames."
                        ),
                        "height": Field(_SIDE, "In pixels."),
                        "width": Field(_SIDE, "In pixels."),
                    }
                ),
                fewest=1,
                most=_LIMITS.max_cameras,
            ),
            "How much each camera showed, by its name.",
        ),
    },
)

ACTION_CHUNK = DocumentKind(
    name="robot-actions",
    title="The next actions as a policy proposes them; nothing says that they are safe.",
    keys={
        "source": Field(_NAME, "Which policy proposes them."),
        "horizon": Field(
            Whole(smallest=1, largest=_LIMITS.max_horizon), "How many steps.", optional=True
        ),
        "action_dim": Field(
            Whole(smallest=1, largest=_LIMITS.max_actions), "Numbers of a step.", optional=True
        ),
        "action_names": Field(_ACTION_NAMES, "What the numbers of a step are, in their order."),
        "streams": Field(
            ListOf(
                item=Record(
                    fields={
                        "name": Field(_NAME, "As the policy calls it."),
                        "start": Field(
                            Whole(smallest=0, largest=_LIMITS.max_actions), "Its first number."
                        ),
                        "end": Field(
                            Whole(smallest=1, largest=_LIMITS.max_actions),
                            "The number after its last.",
                        ),
                    }
                ),
                fewest=0,
                most=_LIMITS.max_actions,
            ),
            "Named parts of a step, side by side.",
            optional=True,
        ),
        "metadata": Field(JsonObject(), "What the policy said beside it.", optional=True),
        "actions": Field(
            ListOf(item=_ACTION_NUMBERS, fewest=1, most=_LIMITS.max_horizon), "Step by step."
        ),
        "observed_at_s": Field(
            Number(),
            "Monotonic clock at the newest frame that the policy was shown, in seconds.",
            optional=True,
        ),
    },
)

ACTION_STEP = DocumentKind(
    name="robot-action-step",
    title="One step of a chunk.",
    keys={
        "source": Field(_NAME, "Which policy proposed it."),
        "step_index": Field(
            Whole(smallest=0, largest=_LIMITS.max_horizon - 1), "Which step of its chunk."
        ),
        "action": Field(
            MapOf(item=Number(), fewest=1, most=_LIMITS.max_actions), "The numbers by their names."
        ),
    },
)

#: The documents of this floor by their names.
DOCUMENTS: Mapping[str, DocumentKind] = {
    kind.name: kind for kind in (EMBODIMENT, OBSERVATION_SUMMARY, ACTION_CHUNK, ACTION_STEP)
}
