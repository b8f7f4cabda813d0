"""
The vision-language-action policies that are known by name: data, not code.

A key is what programs and the command line use. A label is what saved workflows hold: it is matched
to the letter and never changes. Nothing here is downloaded or run.
"""

from __future__ import annotations

import enum
from collections import Counter

import attrs

from vlmcore._arrays import require_text
from vlmcore._spelling import did_you_mean
from vlmcore.errors import PolicyError

__all__ = ["POLICIES", "PolicySpec", "Readiness", "Runtime", "find_policy"]


class Runtime(enum.Enum):
    """What runs a policy, and how it is reached."""

    LEROBOT_HTTP = "lerobot-http"  # LeRobot in a process beside this one, over HTTP
    OPENPI_WEBSOCKET = "openpi-websocket"  # the server of openpi, over WebSocket
    GROOT_ZMQ = "groot-zmq"  # the server of Isaac GR00T, over ZeroMQ
    DEDICATED = "dedicated"  # a program of its own
    DEDICATED_JAX = "dedicated-jax"  # a program of its own, in JAX


class Readiness(enum.Enum):
    """
    How far a policy is from moving a robot; none of them makes its actions safe.

    Example:
        >>> Readiness.BASE.advice
        'knows other robots than yours: fine-tune it on data of your robot first'
    """

    BASE = "base"
    FINE_TUNED = "fine-tuned"
    ARCHITECTURE_ONLY = "architecture-only"
    LEGACY = "legacy"

    @property
    def advice(self) -> str:
        """What it means for a person who wants to use such a policy."""
        match self:
            case Readiness.BASE:
                return "knows other robots than yours: fine-tune it on data of your robot first"
            case Readiness.FINE_TUNED:
                return "trained for the robots that are named: fine-tune it for any other"
            case Readiness.ARCHITECTURE_ONLY:
                return "comes without weights: train it, or bring a checkpoint of your own"
            case Readiness.LEGACY:
                return "an older research baseline: compare with it, do not start from it"


@attrs.frozen(kw_only=True)
class PolicySpec:
    """
    One policy of the catalog.

    Attributes:
        key: Its short name, lower case.
        label: Its name in saved workflows.
        family: The family that it belongs to.
        policy_type: What its runtimes call its kind.
        checkpoint: Its weights, as a hub id or URL; ``None`` where there are only those that you
            bring.
        runtimes: What runs it.
        scale: How large it is, in words.
        readiness: How far it is from moving a robot.
        fine_tuned_for: The robots and benchmarks that there are fine-tuned weights for; those of a
            base policy are other weights than *checkpoint*.
        url: Where to read about it.
    """

    key: str
    label: str
    family: str
    policy_type: str
    checkpoint: str | None
    runtimes: tuple[Runtime, ...]
    scale: str
    readiness: Readiness
    fine_tuned_for: tuple[str, ...] = ()
    url: str


POLICIES: tuple[PolicySpec, ...] = (
    PolicySpec(
        key="smolvla-450m",
        label="SmolVLA 450M — fast consumer hardware",
        family="SmolVLA",
        policy_type="smolvla",
        checkpoint="lerobot/smolvla_base",
        runtimes=(Runtime.LEROBOT_HTTP,),
        scale="450M",
        readiness=Readiness.BASE,
        url="https://huggingface.co/lerobot/smolvla_base",
    ),
    PolicySpec(
        key="x-vla-0.9b",
        label="X-VLA 0.9B — cross-embodiment",
        family="X-VLA",
        policy_type="xvla",
        checkpoint="lerobot/xvla-base",
        runtimes=(Runtime.LEROBOT_HTTP,),
        scale="0.9B",
        readiness=Readiness.BASE,
        fine_tuned_for=("libero", "widowx", "folding"),
        url="https://huggingface.co/lerobot/xvla-base",
    ),
    PolicySpec(
        key="pi0",
        label="π0 base — generalist VLA",
        family="π0",
        policy_type="pi0",
        checkpoint="lerobot/pi0_base",
        runtimes=(Runtime.LEROBOT_HTTP, Runtime.OPENPI_WEBSOCKET),
        scale="large",
        readiness=Readiness.BASE,
        fine_tuned_for=("libero",),
        url="https://huggingface.co/lerobot/pi0_base",
    ),
    PolicySpec(
        key="pi0-fast",
        label="π0-FAST — tokenized fast actions",
        family="π0-FAST",
        policy_type="pi0_fast",
        checkpoint="lerobot/pi0fast-base",
        runtimes=(Runtime.LEROBOT_HTTP, Runtime.OPENPI_WEBSOCKET),
        scale="large",
        readiness=Readiness.BASE,
        fine_tuned_for=("libero",),
        url="https://huggingface.co/lerobot/pi0fast-base",
    ),
    PolicySpec(
        key="pi0.5",
        label="π0.5 base — open-world generalization",
        family="π0.5",
        policy_type="pi05",
        checkpoint="lerobot/pi05_base",
        runtimes=(Runtime.LEROBOT_HTTP, Runtime.OPENPI_WEBSOCKET),
        scale="large",
        readiness=Readiness.BASE,
        fine_tuned_for=("libero",),
        url="https://huggingface.co/lerobot/pi05_base",
    ),
    PolicySpec(
        key="groot-n1.7-3b",
        label="GR00T N1.7 3B — cross-embodiment",
        family="Isaac GR00T N1.7",
        policy_type="groot",
        checkpoint="nvidia/GR00T-N1.7-3B",
        runtimes=(Runtime.GROOT_ZMQ, Runtime.LEROBOT_HTTP),
        scale="3B",
        readiness=Readiness.BASE,
        fine_tuned_for=("droid", "libero", "simpler"),
        url="https://huggingface.co/nvidia/GR00T-N1.7-3B",
    ),
    PolicySpec(
        key="wall-oss",
        label="WALL-OSS — mixture-of-experts VLA",
        family="WALL-OSS",
        policy_type="wall_x",
        checkpoint="x-square-robot/wall-oss-flow",
        runtimes=(Runtime.LEROBOT_HTTP,),
        scale="large MoE",
        readiness=Readiness.BASE,
        url="https://huggingface.co/x-square-robot/wall-oss-flow",
    ),
    PolicySpec(
        key="molmoact2",
        label="MolmoAct2 — action reasoning",
        family="MolmoAct2",
        policy_type="molmoact2",
        checkpoint="lerobot/MolmoAct2-SO100_101-LeRobot",
        runtimes=(Runtime.LEROBOT_HTTP,),
        scale="large",
        readiness=Readiness.FINE_TUNED,
        fine_tuned_for=("so100", "so101"),
        url="https://huggingface.co/lerobot/MolmoAct2-SO100_101-LeRobot",
    ),
    PolicySpec(
        key="vla-jepa",
        label="VLA-JEPA — predictive world representation",
        family="VLA-JEPA",
        policy_type="vla_jepa",
        checkpoint="lerobot/VLA-JEPA-Pretrain",
        runtimes=(Runtime.LEROBOT_HTTP,),
        scale="research",
        readiness=Readiness.BASE,
        fine_tuned_for=("libero", "simpler"),
        url="https://huggingface.co/lerobot/VLA-JEPA-Pretrain",
    ),
    PolicySpec(
        key="lingbot-va",
        label="LingBot-VA — video-action model",
        family="LingBot-VA",
        policy_type="lingbot_va",
        checkpoint="lerobot/lingbot_va_base",
        runtimes=(Runtime.LEROBOT_HTTP,),
        scale="large",
        readiness=Readiness.BASE,
        fine_tuned_for=("libero-long", "robotwin"),
        url="https://huggingface.co/lerobot/lingbot_va_base",
    ),
    PolicySpec(
        key="fastwam",
        label="FastWAM — world action model",
        family="FastWAM",
        policy_type="fastwam",
        checkpoint="ZibinDong/fastwam_libero_uncond_2cam224",
        runtimes=(Runtime.LEROBOT_HTTP,),
        scale="5B backbone class",
        readiness=Readiness.FINE_TUNED,
        fine_tuned_for=("libero",),
        url="https://huggingface.co/ZibinDong/fastwam_libero_uncond_2cam224",
    ),
    PolicySpec(
        key="eo-1",
        label="EO-1 — efficient VLA architecture",
        family="EO-1",
        policy_type="eo1",
        checkpoint=None,
        runtimes=(Runtime.LEROBOT_HTTP,),
        scale="3B VLM class",
        readiness=Readiness.ARCHITECTURE_ONLY,
        url="https://huggingface.co/docs/lerobot/eo1",
    ),
    PolicySpec(
        key="evo-1",
        label="EVO-1 — embodied multimodal architecture",
        family="EVO-1",
        policy_type="evo1",
        checkpoint=None,
        runtimes=(Runtime.LEROBOT_HTTP,),
        scale="research",
        readiness=Readiness.ARCHITECTURE_ONLY,
        url="https://huggingface.co/docs/lerobot/evo1",
    ),
    PolicySpec(
        key="openvla-oft-7b",
        label="OpenVLA-OFT 7B — optimized OpenVLA",
        family="OpenVLA-OFT",
        policy_type="openvla_oft",
        checkpoint="openvla/openvla-7b",
        runtimes=(Runtime.DEDICATED,),
        scale="7B",
        readiness=Readiness.BASE,
        url="https://github.com/openvla/openvla",
    ),
    PolicySpec(
        key="octo-small-27m",
        label="Octo small 27M — legacy lightweight research",
        family="Octo",
        policy_type="octo",
        checkpoint="hf://rail-berkeley/octo-small",
        runtimes=(Runtime.DEDICATED_JAX,),
        scale="27M",
        readiness=Readiness.LEGACY,
        url="https://github.com/octo-models/octo",
    ),
)
"""Every policy of the catalog, in the order of the lists that people choose from."""

_TYPES = Counter(spec.policy_type for spec in POLICIES)
_BY_NAME = {
    name: spec
    for spec in POLICIES
    for name in (spec.label, spec.checkpoint, spec.policy_type)
    if name is not None and (name != spec.policy_type or _TYPES[name] == 1)
}
_BY_KEY = {spec.key: spec for spec in POLICIES}


def find_policy(name: str) -> PolicySpec:
    """
    Find a policy of the catalog.

    Args:
        name: Its key, in any case of letters; or, to the letter, its label, its checkpoint, or its
            policy type if no other policy is of that type.

    Raises:
        PolicyError: If there is none of that name; names close to it are given.
        ContractError: If *name* is not text.

    Example:
        >>> find_policy("pi0.5").checkpoint
        'lerobot/pi05_base'
    """
    require_text(name=name)
    spec = _BY_KEY.get(name.strip().lower()) or _BY_NAME.get(name)
    if spec is None:
        raise PolicyError(
            name, f"the catalog has no such key, label, type or checkpoint{_hint_for(name)}"
        )
    return spec


def _hint_for(name: str) -> str:
    spellings: dict[str, str] = {}
    for spec in POLICIES:
        model = spec.label.partition(" — ")[0]
        known = [spec.key, spec.policy_type, spec.family, spec.label, model, model.split()[0]]
        if spec.checkpoint is not None:
            known += [spec.checkpoint, spec.checkpoint.rpartition("/")[2]]
        for spelling in known:
            spellings.setdefault(spelling.lower(), spec.key)
    return did_you_mean(name, spellings)
