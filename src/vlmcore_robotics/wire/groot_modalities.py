"""What a policy of GR00T says that it takes and gives: its modality configs."""

from __future__ import annotations

import enum
import itertools
from typing import Any

import attrs

from vlmcore._arrays import as_tuple, require_member, require_name, require_names
from vlmcore.errors import ContractError
from vlmcore.limits import ContractLimits, require_at_most

__all__ = [
    "ActionConfig",
    "ActionFormat",
    "ActionRepresentation",
    "ActionType",
    "ModalityConfig",
    "PolicyModalities",
]

_LIMITS = ContractLimits()
_LONGEST = _LIMITS.max_name_characters


class ActionRepresentation(enum.Enum):
    """What a policy was trained to say; what comes over the wire is absolute in every case."""

    RELATIVE = "RELATIVE"
    DELTA = "DELTA"
    ABSOLUTE = "ABSOLUTE"


class ActionType(enum.Enum):
    """Whether an action moves an end effector."""

    EEF = "EEF"
    NON_EEF = "NON_EEF"


class ActionFormat(enum.Enum):
    """How the pose of an end effector is written."""

    DEFAULT = "DEFAULT"
    XYZ_ROT6D = "XYZ_ROT6D"
    XYZ_ROTVEC = "XYZ_ROTVEC"


@attrs.frozen(kw_only=True)
class ActionConfig:
    """
    What the numbers of one action stream are to the policy.

    Attributes:
        rep: What it was trained to say.
        type: Whether it moves an end effector.
        format: How its pose is written.
        state_key: The part of the state that it refers to; ``None`` for that of its own name.

    Raises:
        ContractError: If a field is not as described.
    """

    rep: ActionRepresentation
    type: ActionType
    format: ActionFormat
    state_key: str | None = None

    def __attrs_post_init__(self) -> None:
        require_member(ActionRepresentation, rep=self.rep)
        require_member(ActionType, type=self.type)
        require_member(ActionFormat, format=self.format)
        if self.state_key is not None:
            require_name("state_key", self.state_key, max_characters=_LONGEST)


def _optional_tuple(value: Any) -> Any:
    return None if value is None else as_tuple(value)


@attrs.frozen(kw_only=True)
class ModalityConfig:
    """
    One modality of a policy: its keys, and at which steps each of them is taken.

    Attributes:
        delta_indices: At which steps, counted from now, ascending: ``(-20, 0)`` are two frames that
            are 20 steps apart; those of actions are as many as an answer has steps.
        modality_keys: Its keys, as ``("single_arm", "gripper")``, without ``state.`` before them.
        sin_cos_embedding_keys: Keys whose numbers are angles to the policy.
        mean_std_embedding_keys: Keys whose numbers it normalises by mean and deviation.
        action_configs: What the numbers of each key are, for actions.

    Raises:
        ContractError: If a field is not as described.

    Example:
        >>> two_frames = ModalityConfig(modality_keys=("ego_view",), delta_indices=(-20, 0))
        >>> two_frames.steps_back
        20
    """

    delta_indices: tuple[int, ...] = attrs.field(converter=as_tuple)
    modality_keys: tuple[str, ...] = attrs.field(converter=as_tuple)
    sin_cos_embedding_keys: tuple[str, ...] | None = attrs.field(
        default=None, converter=_optional_tuple
    )
    mean_std_embedding_keys: tuple[str, ...] | None = attrs.field(
        default=None, converter=_optional_tuple
    )
    action_configs: tuple[ActionConfig, ...] | None = attrs.field(
        default=None, converter=_optional_tuple
    )

    def __attrs_post_init__(self) -> None:
        require_names(
            "modality_keys",
            self.modality_keys,
            max_count=_LIMITS.max_actions,
            max_characters=_LONGEST,
        )
        self._check_deltas()
        for field in ("sin_cos_embedding_keys", "mean_std_embedding_keys"):
            keys = getattr(self, field)
            if keys:
                require_names(field, keys, max_count=_LIMITS.max_actions, max_characters=_LONGEST)
        self._check_actions()

    @property
    def steps_back(self) -> int:
        """How many steps the oldest of them lies back."""
        return max(0, -self.delta_indices[0])

    def _check_deltas(self) -> None:
        deltas, most = self.delta_indices, _LIMITS.max_horizon
        if not isinstance(deltas, tuple) or not deltas:
            raise ContractError("delta_indices", f"got {deltas!r:.80}, expected one step or more")
        require_at_most("max_horizon", len(deltas), most)
        for i, delta in enumerate(deltas):
            if type(delta) is not int or not -most < delta < most:
                raise ContractError(
                    f"delta_indices[{i}]", f"got {delta!r:.80}, expected a number of steps"
                )
        if any(later <= delta for delta, later in itertools.pairwise(deltas)):
            raise ContractError("delta_indices", f"got {deltas!r:.80}, expected ascending steps")

    def _check_actions(self) -> None:
        configs = self.action_configs
        if configs is None:
            return
        if not isinstance(configs, tuple) or not all(isinstance(c, ActionConfig) for c in configs):
            raise ContractError("action_configs", f"got {configs!r:.80}, expected ActionConfig")
        if len(configs) != len(self.modality_keys):
            raise ContractError(
                "action_configs",
                f"got {len(configs)}, expected one a key, {len(self.modality_keys)}",
            )


@attrs.frozen(kw_only=True)
class PolicyModalities:
    """
    What a policy takes and gives.

    Attributes:
        video: What it sees.
        state: What it is told of the robot; ``None`` if it is told nothing.
        action: What it proposes.
        language: Where the instruction stands; ``None`` if there is none.

    Raises:
        ContractError: If a field is not as described.
    """

    video: ModalityConfig
    state: ModalityConfig | None = None
    action: ModalityConfig
    language: ModalityConfig | None = None

    def __attrs_post_init__(self) -> None:
        for field in attrs.fields_dict(type(self)):
            value = getattr(self, field)
            is_left_out = value is None and field in ("state", "language")
            if not is_left_out and not isinstance(value, ModalityConfig):
                raise ContractError(field, f"got {value!r:.80}, expected a ModalityConfig")
