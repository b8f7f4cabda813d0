"""The catalog of policies: its rows are data that workflows rely on, so each is pinned here."""

from __future__ import annotations

import re

import pytest

from vlmcore.errors import ContractError, PolicyError
from vlmcore.policy.catalog import POLICIES, Readiness, find_policy

# key, label, family, type, checkpoint, runtimes, scale, readiness, fine-tuned for, where to read
ROWS = [
    (
        "smolvla-450m",
        "SmolVLA 450M — fast consumer hardware",
        "SmolVLA",
        "smolvla",
        "lerobot/smolvla_base",
        "lerobot-http",
        "450M",
        "base",
        "",
        "https://huggingface.co/lerobot/smolvla_base",
    ),
    (
        "x-vla-0.9b",
        "X-VLA 0.9B — cross-embodiment",
        "X-VLA",
        "xvla",
        "lerobot/xvla-base",
        "lerobot-http",
        "0.9B",
        "base",
        "libero widowx folding",
        "https://huggingface.co/lerobot/xvla-base",
    ),
    (
        "pi0",
        "π0 base — generalist VLA",
        "π0",
        "pi0",
        "lerobot/pi0_base",
        "lerobot-http openpi-websocket",
        "large",
        "base",
        "libero",
        "https://huggingface.co/lerobot/pi0_base",
    ),
    (
        "pi0-fast",
        "π0-FAST — tokenized fast actions",
        "π0-FAST",
        "pi0_fast",
        "lerobot/pi0fast-base",
        "lerobot-http openpi-websocket",
        "large",
        "base",
        "libero",
        "https://huggingface.co/lerobot/pi0fast-base",
    ),
    (
        "pi0.5",
        "π0.5 base — open-world generalization",
        "π0.5",
        "pi05",
        "lerobot/pi05_base",
        "lerobot-http openpi-websocket",
        "large",
        "base",
        "libero",
        "https://huggingface.co/lerobot/pi05_base",
    ),
    (
        "groot-n1.7-3b",
        "GR00T N1.7 3B — cross-embodiment",
        "Isaac GR00T N1.7",
        "groot",
        "nvidia/GR00T-N1.7-3B",
        "groot-zmq lerobot-http",
        "3B",
        "base",
        "droid libero simpler",
        "https://huggingface.co/nvidia/GR00T-N1.7-3B",
    ),
    (
        "wall-oss",
        "WALL-OSS — mixture-of-experts VLA",
        "WALL-OSS",
        "wall_x",
        "x-square-robot/wall-oss-flow",
        "lerobot-http",
        "large MoE",
        "base",
        "",
        "https://huggingface.co/x-square-robot/wall-oss-flow",
    ),
    (
        "molmoact2",
        "MolmoAct2 — action reasoning",
        "MolmoAct2",
        "molmoact2",
        "lerobot/MolmoAct2-SO100_101-LeRobot",
        "lerobot-http",
        "large",
        "fine-tuned",
        "so100 so101",
        "https://huggingface.co/lerobot/MolmoAct2-SO100_101-LeRobot",
    ),
    (
        "vla-jepa",
        "VLA-JEPA — predictive world representation",
        "VLA-JEPA",
        "vla_jepa",
        "lerobot/VLA-JEPA-Pretrain",
        "lerobot-http",
        "research",
        "base",
        "libero simpler",
        "https://huggingface.co/lerobot/VLA-JEPA-Pretrain",
    ),
    (
        "lingbot-va",
        "LingBot-VA — video-action model",
        "LingBot-VA",
        "lingbot_va",
        "lerobot/lingbot_va_base",
        "lerobot-http",
        "large",
        "base",
        "libero-long robotwin",
        "https://huggingface.co/lerobot/lingbot_va_base",
    ),
    (
        "fastwam",
        "FastWAM — world action model",
        "FastWAM",
        "fastwam",
        "ZibinDong/fastwam_libero_uncond_2cam224",
        "lerobot-http",
        "5B backbone class",
        "fine-tuned",
        "libero",
        "https://huggingface.co/ZibinDong/fastwam_libero_uncond_2cam224",
    ),
    (
        "eo-1",
        "EO-1 — efficient VLA architecture",
        "EO-1",
        "eo1",
        None,
        "lerobot-http",
        "3B VLM class",
        "architecture-only",
        "",
        "https://huggingface.co/docs/lerobot/eo1",
    ),
    (
        "evo-1",
        "EVO-1 — embodied multimodal architecture",
        "EVO-1",
        "evo1",
        None,
        "lerobot-http",
        "research",
        "architecture-only",
        "",
        "https://huggingface.co/docs/lerobot/evo1",
    ),
    (
        "openvla-oft-7b",
        "OpenVLA-OFT 7B — optimized OpenVLA",
        "OpenVLA-OFT",
        "openvla_oft",
        "openvla/openvla-7b",
        "dedicated",
        "7B",
        "base",
        "",
        "https://github.com/openvla/openvla",
    ),
    (
        "octo-small-27m",
        "Octo small 27M — legacy lightweight research",
        "Octo",
        "octo",
        "hf://rail-berkeley/octo-small",
        "dedicated-jax",
        "27M",
        "legacy",
        "",
        "https://github.com/octo-models/octo",
    ),
]


def test_every_row_is_as_workflows_and_scripts_know_it() -> None:
    """
    A changed label breaks a saved workflow, a changed key a script, a changed checkpoint both.
    """
    rows = [
        (
            spec.key,
            spec.label,
            spec.family,
            spec.policy_type,
            spec.checkpoint,
            " ".join(runtime.value for runtime in spec.runtimes),
            spec.scale,
            spec.readiness.value,
            " ".join(spec.fine_tuned_for),
            spec.url,
        )
        for spec in POLICIES
    ]

    assert ROWS == rows


def test_no_two_policies_share_a_name() -> None:
    """
    A key, a label or a checkpoint names one policy, also when the case of letters is ignored.
    """
    names = [
        {name.lower() for name in (spec.key, spec.label, spec.policy_type, spec.checkpoint or "x")}
        for spec in POLICIES
    ]

    shared = [a & b for i, a in enumerate(names) for b in names[:i]]
    assert {"x"} == set().union(*shared)


def test_keys_can_be_typed_without_quotes() -> None:
    """
    A key is lower case and holds nothing that a shell would read otherwise.
    """
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9.-]*", spec.key) for spec in POLICIES)


@pytest.mark.parametrize("spec", POLICIES, ids=lambda spec: spec.key)
def test_a_policy_is_found_by_key_in_any_case_and_by_its_other_names_to_the_letter(spec) -> None:
    """
    Each of its names finds a policy; a type that two policies share would find none.
    """
    assert spec is find_policy(spec.key)
    assert spec is find_policy(f" {spec.key.upper()} ")
    assert spec is find_policy(spec.label)
    assert spec is find_policy(spec.policy_type)
    if spec.checkpoint is not None:
        assert spec is find_policy(spec.checkpoint)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("SmolVLA", "'smolvla-450m'"),
        ("smolvla_base", "'smolvla-450m'"),
        ("π0", "'pi0'"),
        ("GR00T", "'groot-n1.7-3b'"),
        ("X-VLA 0.9", "'x-vla-0.9b'"),
        ("OpenVLA", "'openvla-oft-7b'"),
        ("lerobot/pi0-base", "'pi0'"),
    ],
)
def test_a_name_that_is_nearly_right_is_answered_with_the_right_one(typed, meant) -> None:
    """
    A typing mistake is answered with what was probably meant.
    """
    with pytest.raises(PolicyError) as error:
        find_policy(typed)

    assert typed == error.value.policy
    assert "did you mean" in str(error.value)
    assert meant in str(error.value)


def test_a_name_like_no_other_is_answered_without_guesses() -> None:
    """
    Nothing is suggested where nothing is close.
    """
    with pytest.raises(PolicyError) as error:
        find_policy("zzz")

    assert "zzz: the catalog has no such key, label, type or checkpoint" == str(error.value)


@pytest.mark.parametrize("name", [None, 3, "", "  ", ["pi0"]])
def test_what_is_no_name_is_refused(name) -> None:
    """
    One error for what is not text, and for text with nothing in it.
    """
    with pytest.raises(ContractError, match="name: got"):
        find_policy(name)


def test_a_policy_without_weights_is_one_that_says_so() -> None:
    """
    Where there is no checkpoint, the readiness tells a person to bring one.
    """
    without = {spec.readiness for spec in POLICIES if spec.checkpoint is None}

    assert {Readiness.ARCHITECTURE_ONLY} == without


def test_every_readiness_is_said_in_words() -> None:
    """
    A person reads what to do first, and not only a word of the trade.
    """
    assert 4 == len({readiness.advice for readiness in Readiness})
    assert "fine-tune it on data of your robot first" in Readiness.BASE.advice
    assert "bring a checkpoint of your own" in Readiness.ARCHITECTURE_ONLY.advice
