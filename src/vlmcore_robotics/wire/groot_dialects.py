"""
How GR00T spells modality configs on the wire, in three generations.

How a server spells them is also how a client finds out which generation it talks to.

======  ============================  =================  ===============================
        marker                        its ``as_json``    arrays and observations
======  ============================  =================  ===============================
N1.5    ``__ModalityConfig_class__``  text, as JSON      files of NumPy, flat keys
N1.6    ``__ModalityConfig_class__``  a map              files of NumPy, maps in maps
N1.7    ``__ModalityConfig__``        a map              as msgpack-numpy, maps in maps
======  ============================  =================  ===============================

Early servers of N1.7 are those of N1.6 on the wire.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import attrs

from vlmcore.contracts.faults import Faults
from vlmcore.contracts.json_text import read_json, write_json
from vlmcore.contracts.shapes import Field, ListOf, Record, Text, Whole, path_of
from vlmcore.errors import ContractError
from vlmcore.limits import ContractLimits, require_at_most
from vlmcore_robotics.wire.groot_modalities import (
    ActionConfig,
    ActionFormat,
    ActionRepresentation,
    ActionType,
    ModalityConfig,
    PolicyModalities,
)
from vlmcore_robotics.wire.ndarrays import ArraySpelling

__all__ = ["GrootDialect", "modalities_from_answer", "modalities_to_answer"]

_LIMITS = ContractLimits()
_LONGEST = _LIMITS.max_name_characters
_MODALITIES = tuple(attrs.fields_dict(PolicyModalities))
_MOST_MODALITIES = 16  # some checkpoints name more than the four


class GrootDialect(enum.Enum):
    """Which generation of GR00T a server speaks as."""

    N1_5 = "N1.5"
    N1_6 = "N1.6"
    N1_7 = "N1.7"

    @property
    def spelling(self) -> ArraySpelling:
        """How it spells arrays."""
        is_newest = self is GrootDialect.N1_7
        return ArraySpelling.MSGPACK_NUMPY if is_newest else ArraySpelling.NPY

    @property
    def marker(self) -> str:
        """The key that marks a modality config."""
        return "__ModalityConfig__" if self is GrootDialect.N1_7 else "__ModalityConfig_class__"

    @property
    def knows_reset(self) -> bool:
        """Whether its servers can be told that an episode ends; those of N1.5 keep no state."""
        return self is not GrootDialect.N1_5


def modalities_from_answer(answer: Any) -> tuple[PolicyModalities, GrootDialect]:
    """
    Read what a server answers to ``get_modality_config``, and which dialect it speaks.

    Args:
        answer: The decoded message.

    Raises:
        DocumentError: If something in it has faults; all of them are listed.
        ContractError: If it is something else altogether.
    """
    if not isinstance(answer, Mapping) or not answer:
        raise ContractError("modalities", f"got {type(answer).__name__}, expected modality configs")
    require_at_most("max_entries", len(answer), _MOST_MODALITIES)
    dialects = {_dialect_of(name, said) for name, said in answer.items()}
    if len(dialects) > 1:
        listed = ", ".join(sorted(dialect.value for dialect in dialects))
        raise ContractError("modalities", f"got spellings of {listed} at once, expected one")
    (dialect,) = dialects
    faults = Faults("modality-config")
    read = {name: _config(name, said, dialect, faults) for name, said in answer.items()}
    for name in ("video", "action"):
        if name not in read:
            faults.add(path_of("$", name), "is missing")
    known = {name: config for name, config in read.items() if name in _MODALITIES}
    return faults.finish(lambda: PolicyModalities(**known)), dialect  # type: ignore[arg-type]


def modalities_to_answer(modalities: PolicyModalities, dialect: GrootDialect) -> dict[str, Any]:
    """Write what a server answers to ``get_modality_config``."""
    answer: dict[str, Any] = {}
    for name in _MODALITIES:
        config = getattr(modalities, name)
        if config is None:
            continue
        said = attrs.asdict(config, value_serializer=_plain)
        if dialect is GrootDialect.N1_5:
            said["modality_keys"] = [_prefix(name) + key for key in config.modality_keys]
            # The oldest class has these two fields only, and takes no others.
            said = {key: said[key] for key in ("delta_indices", "modality_keys")}
        as_json = write_json(said, indent=None) if dialect is GrootDialect.N1_5 else said
        answer[name] = {dialect.marker: True, "as_json": as_json}
    return answer


def _plain(_contract: Any, _field: Any, value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.name
    return list(value) if isinstance(value, tuple) else value


def _dialect_of(name: Any, said: Any) -> GrootDialect:
    for dialect in GrootDialect:
        if isinstance(said, Mapping) and said.keys() == {dialect.marker, "as_json"}:
            is_text = isinstance(said["as_json"], str)
            if is_text == (dialect is GrootDialect.N1_5):
                return dialect
    raise ContractError(
        f"modalities[{name!r:.80}]", f"got {type(said).__name__}, expected a modality config"
    )


def _prefix(modality: str) -> str:
    """What stands before the keys of a modality where there are no maps within maps."""
    return "" if modality == "language" else f"{modality}."


def _names(fewest: int) -> ListOf:
    return ListOf(item=Text(longest=_LONGEST), fewest=fewest, most=_LIMITS.max_actions)


def _members(kind: type[enum.Enum]) -> Text:
    return Text(one_of=tuple(member.name for member in kind))


_ACTION = Record(
    fields={
        "rep": Field(_members(ActionRepresentation), "What the policy was trained to say."),
        "type": Field(_members(ActionType), "Whether it moves an end effector."),
        "format": Field(_members(ActionFormat), "How its pose is written."),
        "state_key": Field(Text(longest=_LONGEST), "What it refers to.", optional=True),
    }
)
_STEP = Whole(smallest=1 - _LIMITS.max_horizon, largest=_LIMITS.max_horizon - 1)
_CONFIG = Record(
    fields={
        "delta_indices": Field(
            ListOf(item=_STEP, fewest=1, most=_LIMITS.max_horizon), "Steps from now."
        ),
        "modality_keys": Field(_names(1), "Its keys."),
        "sin_cos_embedding_keys": Field(_names(0), "Which are angles.", optional=True),
        "mean_std_embedding_keys": Field(_names(0), "Which are normalised.", optional=True),
        "action_configs": Field(
            ListOf(item=_ACTION, fewest=0, most=_LIMITS.max_actions), "One a key.", optional=True
        ),
    }
)


def _config(
    name: str, said: Mapping[str, Any], dialect: GrootDialect, faults: Faults
) -> ModalityConfig | None:
    path, value = path_of("$", name), said["as_json"]
    if dialect is GrootDialect.N1_5:
        value = read_json(value)
    value = _without_nulls(value)
    found = list(_CONFIG.faults(value, path))
    for place, problem in found:
        faults.add(place, problem)
    if found:
        return None
    if dialect is GrootDialect.N1_5:
        value |= {"modality_keys": _unprefixed(name, value["modality_keys"], path, faults)}
    if "action_configs" in value:
        value |= {"action_configs": [_action(each) for each in value["action_configs"]]}
    made: list[ModalityConfig] = []
    with faults.at(path, **{key: f"{path}.{key}" for key in value}):
        made.append(ModalityConfig(**value))
    return made[0] if made else None


def _without_nulls(value: Any) -> Any:
    """Leave out keys that hold nothing, which is how fields without a value travel."""
    if isinstance(value, list):
        return [_without_nulls(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: _without_nulls(each) for key, each in value.items() if each is not None}


def _unprefixed(name: str, keys: list[str], path: str, faults: Faults) -> list[str]:
    prefix = _prefix(name) if name in _MODALITIES else ""
    wrong = [key for key in keys if not key.startswith(prefix)]
    if wrong:
        faults.add(
            f"{path}.modality_keys", f"got {wrong!r:.200}, expected keys that start with {prefix!r}"
        )
    return [key.removeprefix(prefix) for key in keys]


def _action(said: Mapping[str, Any]) -> ActionConfig:
    return ActionConfig(
        rep=ActionRepresentation[said["rep"]],
        type=ActionType[said["type"]],
        format=ActionFormat[said["format"]],
        state_key=said.get("state_key"),
    )
