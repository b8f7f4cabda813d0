"""Policies of LeRobot, as policies of vlmcore."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, final

import numpy as np

from vlmcore._arguments import require_switch
from vlmcore._arrays import require_member, require_text
from vlmcore._closing import Closing
from vlmcore._optional import optional_dependency
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError, PolicyError, PolicyRefusedError
from vlmcore.policy.interface import PolicyInfo
from vlmcore_robotics.adapters._lerobot_features import PolicyFeatures, features_from
from vlmcore_robotics.adapters._lerobot_fitting import Fitting, FrameSize, fit
from vlmcore_robotics.adapters._lerobot_folder import read_policy_folder
from vlmcore_robotics.adapters._lerobot_history import History
from vlmcore_robotics.adapters._lerobot_seeing import Seen, seen_from
from vlmcore_robotics.adapters._lerobot_training import trained_on

if TYPE_CHECKING:
    from vlmcore_robotics.adapters._lerobot_runtime import Model

__all__ = ["FrameSize", "LeRobotPolicy"]

_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")


@final
class LeRobotPolicy(Closing):
    """
    A `vlmcore.policy.interface.Policy` that LeRobot computes; `from_pretrained` makes one.

    `infer` gives the whole chunk that the model predicts, in the units of the data that it was
    trained on: LeRobot's own processors, which are saved with it, normalise what goes in and what
    comes out. How much of a chunk is meant to be executed is ``n_action_steps`` in
    ``info.metadata["policy_contract"]``. NaN that the model gives stays NaN, for a gate to find.

    Policies that look back, as Diffusion Policy, were trained on observations that are one control
    step apart. They are shown those that `infer` and `observe` were given, by ``captured_at_s``:
    what was captured half a step or more beside a step is not taken for it, and where nothing was
    captured, the step after it is repeated, as LeRobot does at the start of an episode. So a loop
    that calls `observe` at each step, and `infer` when it needs actions, gets what LeRobot's own
    ``select_action`` gives. One that asks once a chunk shows a robot that stands still, instead of
    one that is as many times too fast as the chunk has steps. Of the frames of an observation the
    newest is looked at.

    Safe for threads as far as its forks are: each of them is for one thread at a time.

    Attributes:
        info: What it is and what it expects.
    """

    def __init__(
        self,
        model: Model,
        *,
        info: PolicyInfo,
        features: PolicyFeatures,
        fitting: Fitting,
    ) -> None:
        self._model: Model | None = model
        self._info = info
        self._features = features
        self._fitting = fitting
        self._session = model.session()
        self._history: History[Seen] = History(
            count=features.n_obs_steps, step_s=1.0 / (fitting.rate_hz or 1.0)
        )

    @classmethod
    def from_pretrained(
        cls,
        path_or_repo: str | os.PathLike[str],
        *,
        embodiment: Embodiment | None = None,
        rename: Mapping[str, str | None] | None = None,
        frame_size: FrameSize = FrameSize.EXACT,
        dataset: str | os.PathLike[str] | None = None,
        action_names: Sequence[str] | None = None,
        state_names: Sequence[str] | None = None,
        rate_hz: float | None = None,
        name: str | None = None,
        revision: str | None = None,
        download: bool = False,
        device: str | None = None,
    ) -> LeRobotPolicy:
        """
        Load a policy and both of its processors from one folder.

        Only safetensors are read, and no code of the folder or of the hub is run. It is asked once
        before it is returned, so that what does not work is known now, and the first answer to
        somebody else is no slower than the others.

        Args:
            path_or_repo: The folder, as ``save_pretrained`` of LeRobot writes it, or the name of a
                repository of the hub, which is looked for in the cache.
            embodiment: The robot that it is to move. States, actions, cameras and rate are compared
                with it. Without one, cameras are called as the features of the policy.
            rename: For each camera whose feature is called neither as it nor
                ``observation.images.`` and its name: the key of the feature. ``None`` for a camera
                of the robot that the policy is not shown.
            frame_size: What is done with frames that have another size than the feature.
            dataset: The folder of the LeRobotDataset that it was trained on: its names of actions
                and states and its rate are read. A state is put into its order by the names.
            action_names: What the numbers of an action are, if there is no *dataset*.
            state_names: What the numbers of the state are, in the order of the training, if there
                is no *dataset*.
            rate_hz: How many steps a second it was trained at, if there is no *dataset*.
            name: What it is called in chunks and reports; the name of the folder if not given.
            revision: A branch, tag or commit of the repository.
            download: Whether the repository may be fetched, and what its configuration names, as a
                tokenizer; else the hub is not asked.
            device: Where it computes, as ``"cuda:0"``; as its configuration says if not given.

        Raises:
            ContractError: If an argument is not as described, or policy and robot do not go
                together; all differences are listed.
            PolicyError: If the folder may not or can not be loaded.
            MissingDependencyError: If LeRobot is not installed.

        Example:
            >>> policy = LeRobotPolicy.from_pretrained(
            ...     "outputs/train/checkpoints/last/pretrained_model", embodiment=arm, name="cup"
            ... )  # doctest: +SKIP
        """
        require_member(FrameSize, frame_size=frame_size)
        require_switch(download=download)
        said = os.fspath(path_or_repo)
        called = Path(said).resolve().name if name is None else name
        require_text(name=called)
        folder = read_policy_folder(
            called, _folder(called, said, revision=revision, download=download)
        )
        features = features_from(called, folder.config)
        trained = trained_on(
            called,
            dataset=dataset,
            action_names=action_names,
            state_names=state_names,
            rate_hz=rate_hz,
        )
        fitting = fit(
            features,
            trained,
            embodiment=embodiment,
            rename=_renamed(rename),
            frame_size=frame_size,
        )
        model = _runtime().load(called, folder, device=device, download=download)
        info = _info(called, model, features, fitting)
        return cls(model, info=info, features=features, fitting=fitting)

    @property
    def info(self) -> PolicyInfo:
        """What it is and what it expects."""
        return self._info

    def infer(self, observation: Observation) -> ActionChunk:
        """
        Propose the next actions.

        Raises:
            PolicyError: If it is closed, or LeRobot fails.
            ContractError: If the observation is not one of the robot.
        """
        model = self._opened()
        self.observe(observation)
        values = model.chunk(self._session, self._history.window())
        return ActionChunk(
            values=values,
            names=self._fitting.action_names,
            source=self._info.name,
            observed_at_s=observation.captured_at_s,
        )

    def steps_back(self) -> int:
        """Say how many control steps before an observation it looks."""
        return self._features.n_obs_steps - 1

    def observe(self, observation: Observation) -> None:
        """
        Show an observation for which no actions are needed, to a policy that looks back.

        Raises:
            PolicyError: If it is closed.
            ContractError: If the observation is not one of the robot.
        """
        self._opened()
        self._history.add(seen_from(observation, self._fitting), at_s=observation.captured_at_s)

    def reset(self) -> None:
        """Forget the episode."""
        self._session = self._opened().session()
        self._history.clear()

    def fork(self) -> LeRobotPolicy:
        """Make another one with the same weights, in the same memory, and an episode of its own."""
        return LeRobotPolicy(
            self._opened(),
            info=self._info,
            features=self._features,
            fitting=self._fitting,
        )

    def offload(self) -> None:
        """Move the weights to the CPU, those of its forks too, until the next `infer`."""
        self._opened().offload()

    def close(self) -> None:
        """Let go of the weights, which are freed with the last fork. Closing twice is no error."""
        self._model = self._session = None
        self._history.clear()

    def _opened(self) -> Model:
        if self._model is None:
            raise PolicyError(self._info.name, "this policy is closed: make it again")
        return self._model


def _runtime() -> ModuleType:
    with optional_dependency("lerobot", "lerobot"):
        from vlmcore_robotics.adapters import _lerobot_runtime  # noqa: PLC0415 - the door
    return _lerobot_runtime


def _folder(policy: str, said: str, *, revision: str | None, download: bool) -> Path:
    """Find the folder that *said* names: a folder first, then a repository of the hub."""
    if Path(said).is_dir():
        if revision is not None:
            raise ContractError(
                "revision", f"got {revision!r:.80} for a folder; only repositories have one"
            )
        return Path(said)
    if not _REPOSITORY.fullmatch(said):
        raise PolicyError(policy, f"{said!r:.200} is neither a folder nor the name of a repository")
    runtime = _runtime()
    return Path(runtime.downloaded(policy, said, revision=revision, download=download))


def _renamed(rename: Mapping[str, str | None] | None) -> Mapping[str, str | None]:
    said: Any = {} if rename is None else rename
    if not isinstance(said, Mapping) or not all(
        isinstance(camera, str) and (key is None or isinstance(key, str))
        for camera, key in said.items()
    ):
        raise ContractError("rename", f"got {said!r:.80}, expected keys of features by cameras")
    return dict(said)


def _info(policy: str, model: Model, features: PolicyFeatures, fitting: Fitting) -> PolicyInfo:
    return PolicyInfo(
        name=policy,
        action_names=fitting.action_names,
        action_units=fitting.action_units,
        state_names=fitting.state_names,
        cameras=fitting.camera_specs,
        horizon=_tried(policy, model, features),
        rate_hz=fitting.rate_hz,
        metadata={
            "policy_type": features.kind,
            "lerobot": _runtime().VERSION,
            "policy_contract": features.document,
        },
    )


def _tried(policy: str, model: Model, features: PolicyFeatures) -> int:
    """Ask for one chunk about nothing, and tell how many steps it has."""
    count = features.state_count
    nothing = Seen(
        task="nothing",
        state=None if count is None else np.zeros(count),
        frames={key: np.zeros((*size, 3), np.uint8) for key, size in features.cameras.items()},
    )
    steps, width = model.trial(nothing, count=features.n_obs_steps).shape
    if width != features.action_count:
        raise PolicyRefusedError(
            policy, f"its actions have {width} numbers, expected {features.action_count} as it says"
        )
    return int(steps)
