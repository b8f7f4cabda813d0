"""
What the folder of a LeRobot policy holds, read without LeRobot, and whether it may be loaded.

LeRobot imports whatever class a processor names, leaves numbers as they are where statistics are
missing, and asks the hub for files that are not there. So this is looked at before LeRobot is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from vlmcore.contracts.json_text import read_json
from vlmcore.errors import ContractError, PolicyError
from vlmcore.limits import ModelLimits, require_at_most

__all__ = ["POSTPROCESSOR", "PREPROCESSOR", "PolicyFolder", "read_object", "read_policy_folder"]

PREPROCESSOR = "policy_preprocessor.json"
POSTPROCESSOR = "policy_postprocessor.json"
_WEIGHTS = "model.safetensors"
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
_LIMITS = ModelLimits()

_FROM_THE_HUB = "LeRobot runs code from the hub to build it, which is not done here"
_STEPWISE = "it follows an episode step by step, and requests for chunks do not"
_NOT_SERVED = {
    "gaussian_actor": _FROM_THE_HUB,
    "groot": _FROM_THE_HUB,
    "pi0_fast": _FROM_THE_HUB,
    "reward_classifier": _FROM_THE_HUB,
    "sac": _FROM_THE_HUB,
    "wall_x": _FROM_THE_HUB,
    "lingbot_va": _STEPWISE,
    "tdmpc": _STEPWISE,
}
_STEPS_FROM_THE_HUB = ("action_tokenizer_processor",)
_NEEDED = {  # what is needed of the statistics, by the mode of normalisation
    "IDENTITY": (),
    "MEAN_STD": ("mean", "std"),
    "MIN_MAX": ("min", "max"),
    "QUANTILES": ("q01", "q99"),
    "QUANTILE10": ("q10", "q90"),
}
_NORMALIZER, _UNNORMALIZER = "normalizer_processor", "unnormalizer_processor"


@attrs.frozen(kw_only=True)
class PolicyFolder:
    """
    A folder that may be loaded.

    Attributes:
        path: Where it is.
        config: Its ``config.json``.
        preprocessor: The names of the steps before the model.
        postprocessor: The names of the steps after it.
    """

    path: Path
    config: Mapping[str, Any]
    preprocessor: tuple[str, ...]
    postprocessor: tuple[str, ...]


def read_policy_folder(policy: str, path: Path) -> PolicyFolder:
    """
    Look through a folder as LeRobot saves it: the model and both processors.

    Args:
        policy: The policy as the caller named it.
        path: The folder.

    Raises:
        PolicyError: If it may not or cannot be loaded: pickled weights, classes that are not
            LeRobot's, statistics or files that are missing, a kind of policy that is not served.
    """
    names = {each.name for each in path.iterdir()}
    _check_names(policy, names)
    config = read_object(policy, path / "config.json")
    kind = config.get("type")
    if not isinstance(kind, str):
        raise PolicyError(policy, f"its config.json has type {kind!r:.80}, expected a text")
    if kind in _NOT_SERVED:
        raise PolicyError(policy, f"is of type {kind!r}: {_NOT_SERVED[kind]}")
    steps = {name: _steps(policy, path, name) for name in (PREPROCESSOR, POSTPROCESSOR)}
    return PolicyFolder(
        path=path,
        config=config,
        preprocessor=steps[PREPROCESSOR],
        postprocessor=steps[POSTPROCESSOR],
    )


def _check_names(policy: str, names: set[str]) -> None:
    pickles = sorted(name for name in names if name.endswith(_PICKLES))
    if pickles:
        raise PolicyError(
            policy,
            f"has a pickle in its folder ({pickles[0]}), and reading those runs code: only "
            "safetensors are loaded",
        )
    if "adapter_config.json" in names:
        raise PolicyError(policy, "is an adapter (adapter_config.json): merge it into its policy")
    if "config.json" not in names:
        raise PolicyError(policy, "is no folder of a policy: it has no config.json")
    missing = [name for name in (_WEIGHTS, PREPROCESSOR, POSTPROCESSOR) if name not in names]
    if _WEIGHTS in missing:
        raise PolicyError(policy, f"has no weights: {_WEIGHTS} is not there")
    if missing:
        raise PolicyError(
            policy,
            f"has no {' and no '.join(missing)}: save both processors beside the policy; for one "
            "of before LeRobot 0.4, lerobot.processor.migrate_policy_normalization does it",
        )


def _steps(policy: str, path: Path, name: str) -> tuple[str, ...]:
    """Check each step of one processor, and name them."""
    steps = read_object(policy, path / name).get("steps")
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise PolicyError(policy, f"its {name} has no list of steps")
    return tuple(_step(policy, path, f"step {i} of its {name}", s) for i, s in enumerate(steps))


def _step(policy: str, path: Path, where: str, step: dict[str, Any]) -> str:
    name, of_class, state = (step.get(key) for key in ("registry_name", "class", "state_file"))
    if not isinstance(name, str):
        if not isinstance(of_class, str) or not of_class.startswith("lerobot."):
            raise PolicyError(
                policy, f"{where} is {of_class!r:.80}, expected a step of LeRobot: others are code"
            )
        name = of_class.rpartition(".")[2]
    if name in _STEPS_FROM_THE_HUB:
        raise PolicyError(policy, f"{where} is {name!r}: {_FROM_THE_HUB}")
    if state is not None:
        is_beside = isinstance(state, str) and Path(state).name == state
        if not is_beside or not state.endswith(".safetensors") or not (path / state).is_file():
            raise PolicyError(
                policy, f"{where} has the state file {state!r:.80}, expected one beside it"
            )
    if name in (_NORMALIZER, _UNNORMALIZER):
        tensors = {} if state is None else _tensor_shapes(policy, path / state)
        try:
            missing = sorted(_missing(name, step["config"], tensors))
        except (KeyError, TypeError, AttributeError) as error:
            raise PolicyError(policy, f"{where} has settings that make no sense") from error
        if missing:
            raise PolicyError(
                policy,
                f"{where} lacks the statistics {', '.join(missing)}, and LeRobot would leave the "
                "numbers as they are: save it with those of the data set",
            )
    return name


def _missing(name: str, settings: Any, tensors: Mapping[str, tuple[int, ...]]) -> Iterator[str]:
    """Name the statistics that a step needs and has not, or has in another shape."""
    modes, only = settings["norm_map"], settings.get("normalize_observation_keys")
    for key, feature in settings["features"].items():
        kind, shape = feature["type"], tuple(feature["shape"])
        is_used = (kind == "ACTION") == (name == _UNNORMALIZER)
        if not is_used or (only is not None and kind != "ACTION" and key not in only):
            continue
        for statistic in _NEEDED[modes.get(kind, "IDENTITY")]:
            found = tensors.get(f"{key}.{statistic}")
            if found is None or (kind != "VISUAL" and found != shape):
                yield f"{key}.{statistic}"


def _tensor_shapes(policy: str, path: Path) -> dict[str, tuple[int, ...]]:
    """Read from the header of a file of safetensors what is in it."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            require_at_most("max_config_bytes", length, _LIMITS.max_config_bytes)
            header = json.loads(file.read(length))
        return {
            name: tuple(tensor["shape"])
            for name, tensor in header.items()
            if name != "__metadata__"
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise PolicyError(policy, f"{path.name} is damaged ({type(error).__name__})") from error


def read_object(policy: str, path: Path) -> dict[str, Any]:
    """
    Read a file that holds a JSON object, of bounded size.

    Raises:
        PolicyError: If it does not, with the name of the file.
    """
    try:
        require_at_most("max_config_bytes", path.stat().st_size, _LIMITS.max_config_bytes)
        value = read_json(path.read_bytes(), allow_nan=True)
    except OSError as error:
        raise PolicyError(policy, f"{path.name} cannot be read ({error.strerror})") from error
    except ContractError as error:
        raise PolicyError(policy, f"{path.name} cannot be read ({error})") from error
    if not isinstance(value, dict):
        raise PolicyError(policy, f"{path.name} holds {type(value).__name__}, expected an object")
    return value
