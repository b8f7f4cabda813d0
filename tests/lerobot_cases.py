"""Small LeRobot policies, saved without a network, and the robot that they are for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lerobot_imports import import_torchvision
from vlmcore.contracts.embodiment import (
    ActionDim,
    ActionSpace,
    CameraSpec,
    Embodiment,
    LimitsSource,
)
from vlmcore.contracts.observation import Observation
from vlmcore_robotics.wire.observation_layout import CameraKey, ObservationLayout, StateKey

import_torchvision()

from lerobot.configs.policies import PreTrainedConfig  # noqa: E402
from lerobot.configs.types import FeatureType, PolicyFeature  # noqa: E402
from lerobot.policies.act.configuration_act import ACTConfig  # noqa: E402
from lerobot.policies.act.modeling_act import ACTPolicy  # noqa: E402, F401
from lerobot.policies.diffusion.configuration_diffusion import DiffusionConfig  # noqa: E402
from lerobot.policies.factory import get_policy_class, make_pre_post_processors  # noqa: E402
from lerobot.policies.vqbet.configuration_vqbet import VQBeTConfig  # noqa: E402

NAMES = ("shoulder", "elbow", "gripper")
RATE_HZ = 20.0
SIDE_PX = 64
CAMERA = "observation.images.front"
ROBOT = Embodiment(
    name="three-joint arm",
    state_names=NAMES,
    actions=ActionSpace(
        dims=[ActionDim(name=name, unit="rad", low=-3, high=3, max_step=0.5) for name in NAMES],
        rate_hz=RATE_HZ,
    ),
    cameras=[CameraSpec(name="front", height_px=SIDE_PX, width_px=SIDE_PX)],
    limits_source=LimitsSource.TEMPLATE,
)
LAYOUT = ObservationLayout(
    cameras=[CameraKey(camera="front", key="observation/image")],
    state=[StateKey(key="observation/state", count=3)],
)


def seen_at(step: int, **changes: Any) -> Observation:
    """Make the observation of a step: pictures and states of each are others."""
    random = np.random.default_rng(step)
    return Observation(
        **{
            "instruction": "put the cup on the table",
            "state": random.uniform(-1, 1, 3),
            "images": {"front": random.integers(0, 256, (SIDE_PX, SIDE_PX, 3), np.uint8)},
            "frame_rate_hz": RATE_HZ,
            "captured_at_s": 100.0 + step / RATE_HZ,
            **changes,
        }
    )


def save_act(path: Path, **options: Any) -> Path:
    """Save an ACT policy and its processors."""
    config = ACTConfig(
        **features(),
        **{
            "chunk_size": 16,
            "n_action_steps": 16,
            "pretrained_backbone_weights": None,
            "dim_model": 64,
            "n_heads": 4,
            "dim_feedforward": 128,
            "n_encoder_layers": 1,
            "n_decoder_layers": 1,
            "use_vae": False,
            **options,
        },
    )
    return save(path, config)


def save_diffusion(path: Path, **options: Any) -> Path:
    """Save a Diffusion Policy and its processors."""
    config = DiffusionConfig(
        **features(),
        **{
            "n_obs_steps": 2,
            "horizon": 8,
            "n_action_steps": 4,
            "pretrained_backbone_weights": None,
            "down_dims": (32, 64),
            "diffusion_step_embed_dim": 16,
            "spatial_softmax_num_keypoints": 4,
            "num_train_timesteps": 10,
            "num_inference_steps": 3,
            **options,
        },
    )
    return save(path, config)


def save_vqbet(path: Path) -> Path:
    """Save a VQ-BeT, which looks at five steps, and its processors."""
    config = VQBeTConfig(
        **features(),
        pretrained_backbone_weights=None,
        crop_shape=(56, 56),
        gpt_n_layer=1,
        gpt_n_head=2,
        gpt_hidden_dim=32,
        gpt_input_dim=32,
        gpt_output_dim=32,
        vqvae_embedding_dim=16,
        vqvae_enc_hidden_dim=16,
        spatial_softmax_num_keypoints=4,
    )
    return save(path, config)


def features() -> dict[str, Any]:
    """Say what every policy here is fed and gives."""
    return {
        "input_features": {
            "observation.state": PolicyFeature(type=FeatureType.STATE, shape=(3,)),
            CAMERA: PolicyFeature(type=FeatureType.VISUAL, shape=(3, SIDE_PX, SIDE_PX)),
        },
        "output_features": {"action": PolicyFeature(type=FeatureType.ACTION, shape=(3,))},
        "device": "cpu",
        "push_to_hub": False,
    }


def save(path: Path, config: Any) -> Path:
    """Save a policy with weights drawn from a seed, and processors with made-up statistics."""
    with torch.random.fork_rng():
        torch.manual_seed(7)
        policy = get_policy_class(config.type)(config)
        policy.save_pretrained(path)
    for processor in make_pre_post_processors(config, dataset_stats=statistics()):
        processor.save_pretrained(path)
    return path


def statistics() -> dict[str, dict[str, torch.Tensor]]:
    """Make the statistics of a data set that was never there."""
    pixel = torch.full((3, 1, 1), 0.5)
    return {
        "observation.state": moments(torch.tensor([0.1, -0.2, 0.3]), torch.tensor([0.5, 0.7, 0.9])),
        "action": moments(torch.tensor([-0.1, 0.2, 0.5]), torch.tensor([0.4, 0.6, 0.8])),
        CAMERA: moments(pixel, pixel / 2),
    }


def moments(mean: torch.Tensor, std: torch.Tensor) -> dict[str, torch.Tensor]:
    """Make all statistics that a normaliser may ask for."""
    return {"mean": mean, "std": std, "min": mean - 2 * std, "max": mean + 2 * std}


def change(path: Path, name: str, edit: Callable[[Any], None]) -> Path:
    """Edit a JSON file of the folder."""
    file = path / name
    value = json.loads(file.read_text(encoding="utf-8"))
    edit(value)
    file.write_text(json.dumps(value), encoding="utf-8")
    return path


class RealPolicy:
    """LeRobot itself: its policy and processors, called as its own programs call them."""

    def __init__(self, path: Path) -> None:
        config = PreTrainedConfig.from_pretrained(str(path), local_files_only=True)
        self.policy = get_policy_class(config.type).from_pretrained(str(path), config=config)
        self.before, self.after = make_pre_post_processors(config, pretrained_path=str(path))

    def batch(self, seen: Observation) -> dict[str, Any]:
        frame = torch.from_numpy(np.array(seen.images["front"][-1]))
        return self.before(
            {
                "observation.state": torch.from_numpy(np.array(seen.state, np.float32))[None],
                CAMERA: (frame.type(torch.float32) / 255).permute(2, 0, 1).contiguous()[None],
                "task": seen.instruction,
            }
        )

    def chunk(self, seen: Observation) -> Any:
        """Call ``predict_action_chunk``."""
        with torch.inference_mode():
            return self.after(self.policy.predict_action_chunk(self.batch(seen)))[0].numpy()

    def actions(self, count: int) -> Any:
        """Call ``select_action`` at each of the first steps of an episode."""
        self.policy.reset()
        with torch.inference_mode():
            rows = [self.policy.select_action(self.batch(seen_at(i))) for i in range(count)]
            return np.stack([self.after(row)[0].numpy() for row in rows])
