"""The door to LeRobot, 0.4 to 0.6: one model with its processors, shared by all that ask it."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import lerobot
import lerobot.policies
from huggingface_hub import constants, snapshot_download, utils
from lerobot.configs.policies import PreTrainedConfig
from lerobot.policies import factory
from lerobot.policies.utils import populate_queues

from vlmcore._arrays import Float64Array
from vlmcore.errors import PolicyError, PolicyRefusedError, VlmcoreError
from vlmcore.secrets import redact
from vlmcore_robotics.adapters import _torch_batches
from vlmcore_robotics.adapters._lerobot_features import ACTION, IMAGES, STATE
from vlmcore_robotics.adapters._lerobot_folder import PolicyFolder
from vlmcore_robotics.adapters._lerobot_seeing import Seen

__all__ = ["VERSION", "Model", "downloaded", "load"]

VERSION: str = lerobot.__version__

# lerobot.policies has them from 0.6 on, its module factory before.
_source: Any = lerobot.policies if hasattr(lerobot.policies, "get_policy_class") else factory
_FILES = ("*.json", "*.safetensors", "*.txt", "*.model")
_QUEUES = {STATE, IMAGES, ACTION}
_lock = threading.Lock()


def downloaded(policy: str, repository: str, *, revision: str | None, download: bool) -> Path:
    """
    Find the folder of a policy of the hub: in the cache, or fetched.

    Raises:
        PolicyError: If it is not in the cache, and may or can not be fetched.
    """
    try:
        return Path(
            snapshot_download(
                repository,
                revision=revision,
                allow_patterns=list(_FILES),
                local_files_only=not download,
            )
        )
    except Exception as error:  # noqa: BLE001 - of many packages
        why = f"the hub cannot give it ({type(error).__name__})"
    if not download:
        why = "neither a folder nor in the cache of the hub; download=True fetches it"
    raise PolicyError(policy, why)  # without its cause: a token may be in that


def load(policy: str, folder: PolicyFolder, *, device: str | None, download: bool) -> Model:
    """
    Load a policy and both processors.

    Args:
        policy: The policy as the caller named it.
        folder: Where it is.
        device: Where it computes; as its configuration says if not given.
        download: Whether the hub may be asked for models that its configuration names.

    Raises:
        PolicyError: If LeRobot cannot load it.
        ContractError: If there is no such device.
    """
    path = str(folder.path)
    with _explained(policy, "cannot load it"), nullcontext() if download else _offline():
        config = PreTrainedConfig.from_pretrained(path, local_files_only=True)
        if device is not None:
            config.device = _torch_batches.require_device(device)
        # What the weights of the folder overwrite is not fetched first.
        for name, nothing in (("pretrained_backbone_weights", None), ("load_vlm_weights", False)):
            if hasattr(config, name):
                setattr(config, name, nothing)
        kind = _source.get_policy_class(config.type)
        module = kind.from_pretrained(path, config=config, local_files_only=True, strict=True)
        overrides: dict[str, Any] = {
            "device_processor": {"device": config.device},
            "rename_observations_processor": {"rename_map": {}},  # the keys are those of the policy
        }
        before, after = _source.make_pre_post_processors(
            config,
            pretrained_path=path,
            preprocessor_overrides={
                name: each for name, each in overrides.items() if name in folder.preprocessor
            },
        )
    return Model(policy, module, before, after, device=config.device)


class Model:
    """
    The weights and the processors. Safe for threads: it does one thing at a time.

    Args:
        policy: The policy as the caller named it.
        module: What LeRobot loaded.
        before: Its processor of observations.
        after: Its processor of actions.
        device: Where it computes.
    """

    def __init__(self, policy: str, module: Any, before: Any, after: Any, *, device: str) -> None:
        self._policy = policy
        self._module = module
        self._before = before
        self._after = after
        self._device = device
        self._is_away = False
        self._turn = threading.Lock()

    def session(self) -> Any:
        """Make what keeps the state of one episode: the same weights with queues of its own."""
        with self._turn, _explained(self._policy, "cannot reset it"):
            module = copy.copy(self._module)  # its parts, which hold the weights, are not copied
            module.reset()
        return module

    def trial(self, nothing: Seen, *, count: int) -> Float64Array:
        """Predict a chunk for nobody; random numbers go on as if it had not been."""
        with _torch_batches.unseeded(self._device):
            return self.chunk(self.session(), [nothing] * count)

    def chunk(self, session: Any, steps: Sequence[Seen]) -> Float64Array:
        """
        Predict a chunk, ``[T, D]``, in the units of the robot.

        Args:
            session: What `session` made.
            steps: What is seen at each step that the policy looks at, oldest first.

        Raises:
            PolicyRefusedError: If LeRobot fails, or gives no chunk.
            ContractError: If float32 cannot hold a number of a state.
        """
        with self._turn, _explained(self._policy, "failed"):
            if self._is_away:
                self._module.to(self._device)
                self._is_away = False
            with _torch_batches.inferring(self._device, mixed=session.config.use_amp):
                seen = [self._before(_batch(step)) for step in steps]
                newest = self._queued(session, seen)
                chunk = self._after(session.predict_action_chunk(newest))
                values = _torch_batches.array_from(chunk)
        if values.ndim != 3 or len(values) != 1 or values.size == 0:
            raise PolicyRefusedError(
                self._policy,
                f"it gave actions of shape {list(values.shape)}, expected [1, horizon, actions]",
            )
        chunk_of_one: Float64Array = values[0]
        return chunk_of_one

    def offload(self) -> None:
        """Move the weights to the CPU until they are needed."""
        with self._turn, _explained(self._policy, "cannot move it"):
            if not self._is_away:
                self._module.to("cpu")
                self._is_away = True
        _torch_batches.release()

    def _queued(self, session: Any, seen: list[dict[str, Any]]) -> dict[str, Any]:
        """Fill the queues of a policy that has some for observations, as `select_action` does."""
        queues = getattr(session, "_queues", None) or {}
        if not queues.keys() - {ACTION}:
            return seen[-1]
        if not queues.keys() <= _QUEUES:
            raise PolicyRefusedError(
                self._policy, f"it has queues for {sorted(queues)}, expected {sorted(_QUEUES)}"
            )
        session.reset()
        for batch in seen:
            batch.pop(ACTION, None)  # processors put an empty one in
            if session.config.image_features:
                pictures = [batch[key] for key in session.config.image_features]
                batch[IMAGES] = _torch_batches.side_by_side(pictures)
            populate_queues(session._queues, batch)  # noqa: SLF001 - LeRobot has no other way
        return seen[-1]


def _batch(seen: Seen) -> dict[str, Any]:
    """Write what is seen as LeRobot expects it."""
    batch: dict[str, Any] = {
        key: _torch_batches.frame_tensor(frame) for key, frame in seen.frames.items()
    }
    if seen.state is not None:
        batch[STATE] = _torch_batches.state_tensor(seen.state)
    return {**batch, "task": seen.task}


@contextmanager
def _explained(policy: str, what: str) -> Iterator[None]:
    """Turn what LeRobot raises into an error of ours."""
    try:
        yield
    except VlmcoreError:
        raise
    except Exception as error:
        words = redact(f"{type(error).__name__}: {error}", max_characters=400)
        raise PolicyRefusedError(policy, f"LeRobot {VERSION} {what}: {words}") from error


@contextmanager
def _offline() -> Iterator[None]:
    """Keep the hub's client from the network: configurations name models that it would fetch."""
    with _lock:
        before = constants.HF_HUB_OFFLINE
        constants.HF_HUB_OFFLINE = True
        _forget_connections()
        try:
            yield
        finally:
            constants.HF_HUB_OFFLINE = before
            _forget_connections()


def _forget_connections() -> None:
    """Let the hub's client look again whether it is offline; before 1.0 it looks only once."""
    getattr(utils, "reset_sessions", lambda: None)()
