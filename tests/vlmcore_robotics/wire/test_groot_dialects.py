"""Tests of `vlmcore_robotics.wire.groot_dialects`, `groot_modalities` and the first questions."""

from __future__ import annotations

import contextlib
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.wire.groot_messages import CONFIGS
from golden.wire.messages import golden
from groot_cases import CODECS, MODALITIES, RELATIVE
from vlmcore.errors import (
    ContractError,
    DocumentError,
    PolicyProtocolError,
    PolicyRefusedError,
    VlmcoreError,
)
from vlmcore.limits import WireLimits
from vlmcore.secrets import Secret
from vlmcore_robotics.wire.frames import FrameKind, decode_frame, encode_frame
from vlmcore_robotics.wire.groot_calls import (
    ask_modalities,
    ask_ping,
    encode_failure,
    read_modalities,
    read_ping,
)
from vlmcore_robotics.wire.groot_dialects import (
    GrootDialect,
    modalities_from_answer,
    modalities_to_answer,
)
from vlmcore_robotics.wire.groot_modalities import ActionConfig, ModalityConfig, PolicyModalities

PLAIN = attrs.evolve(
    MODALITIES, action=attrs.evolve(MODALITIES.action, action_configs=None)
)  # what N1.5 can say


def said(**changes: Any) -> dict[str, Any]:
    """Make an answer of N1.7 whose video config has *changes*."""
    configs = {**CONFIGS, "video": {**CONFIGS["video"], **changes}}
    return {name: {"__ModalityConfig__": True, "as_json": each} for name, each in configs.items()}


@pytest.mark.parametrize("dialect", GrootDialect)
def test_the_dialect_is_found_from_how_modality_configs_are_spelled(dialect: GrootDialect) -> None:
    """
    The answer is the first thing that comes; everything after it depends on it.
    """
    found = read_modalities(golden(f"groot-{dialect.value.lower()}-modalities"), policy="groot")

    assert (PLAIN if dialect is GrootDialect.N1_5 else MODALITIES, dialect) == found


def test_the_first_questions_are_the_same_in_every_generation() -> None:
    """
    Whoever asks does not know yet whom.
    """
    token = Secret("sekret-token-1234")
    assert {"endpoint": "get_modality_config"} == decode_frame(
        ask_modalities(), kind=FrameKind.REQUEST
    )
    assert {"endpoint": "ping", "api_token": "sekret-token-1234"} == decode_frame(
        ask_ping(token=token), kind=FrameKind.REQUEST
    )


def test_a_ping_is_answered_by_a_server_of_groot_or_not() -> None:
    """
    Another peer at the port is found out.
    """
    read_ping(CODECS[GrootDialect.N1_6].encode_pong(), policy="groot")
    with pytest.raises(PolicyRefusedError, match="busy"):
        read_ping(encode_failure("busy"), policy="groot")
    for frame in (
        b"\x80",
        b"HTTP/1.1 400 Bad Request\r\n",
        b"",
        encode_frame([1], kind=FrameKind.METADATA),
    ):
        with pytest.raises(PolicyProtocolError):
            read_ping(frame, policy="groot")


def test_what_a_server_says_of_itself_is_read_within_the_limits_that_are_given() -> None:
    """
    Fewer bytes than usual, or more, by who asks.
    """
    large = encode_frame({"status": "ok", "card": bytes(2 << 20)}, kind=FrameKind.RESPONSE)
    modalities = CODECS[GrootDialect.N1_7].encode_modalities()
    wide, narrow = WireLimits(max_metadata_bytes=4 << 20), WireLimits(max_metadata_bytes=10)

    assert {"card"} == read_ping(large, policy="groot", limits=wide).keys()
    for read, frame in ((read_ping, large), (read_modalities, modalities)):
        with pytest.raises(PolicyProtocolError, match="max_metadata_bytes"):
            read(frame, policy="groot", limits=narrow)
    with pytest.raises(PolicyProtocolError, match="max_metadata_bytes"):
        read_ping(large, policy="groot")


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"delta_indices": []}, "$.video.delta_indices"),
        ({"delta_indices": [0, 0]}, "$.video.delta_indices"),
        ({"delta_indices": [0, -1]}, "$.video.delta_indices"),
        ({"delta_indices": [0.0]}, "$.video.delta_indices[0]"),
        ({"delta_indices": [True]}, "$.video.delta_indices[0]"),
        ({"delta_indices": [-5000]}, "$.video.delta_indices[0]"),
        ({"delta_indices": list(range(4097))}, "$.video.delta_indices"),
        ({"delta_indices": None}, "$.video.delta_indices"),
        ({"modality_keys": []}, "$.video.modality_keys"),
        ({"modality_keys": ["a", "a"]}, "$.video.modality_keys"),
        ({"modality_keys": ["a\x1bb"]}, "$.video.modality_keys[0]"),
        ({"modality_keys": "front"}, "$.video.modality_keys"),
        ({"modality_key": ["front"]}, "$.video.modality_key"),
        ({"sin_cos_embedding_keys": [1]}, "$.video.sin_cos_embedding_keys[0]"),
        ({"action_configs": [{}]}, "$.video.action_configs[0].rep"),
        (
            {
                "action_configs": [
                    {"rep": "SIDEWAYS", "type": "EEF", "format": "DEFAULT", "state_key": None}
                ]
            },
            "$.video.action_configs[0].rep",
        ),
        (
            {"action_configs": [{"rep": "DELTA", "type": "EEF", "format": "DEFAULT"}]},
            "$.video.action_configs",
        ),
    ],
)
def test_a_config_that_is_not_one_is_refused_with_the_place(
    changes: dict[str, Any], path: str
) -> None:
    """
    Strict: what is not understood is not left out.
    """
    with pytest.raises(DocumentError) as caught:
        modalities_from_answer(said(**changes))
    assert path in [place for place, _ in caught.value.faults]


@pytest.mark.parametrize(
    "answer",
    [
        None,
        {},
        [],
        {"video": 7},
        {"video": {"__ModalityConfig__": True}},
        {"video": {"__ModalityConfig__": True, "as_json": "{}"}},
        {"video": {"__ModalityConfig_class__": True, "as_json": "not JSON"}},
        {"video": {"__ModalityConfig_class__": True, "as_json": "[]"}},
        {"video": {"__ModalityConfig_class__": True, "as_json": '{"delta_indices": [NaN]}'}},
        {"video": said()["video"]},
        {name: said()["video"] for name in map(str, range(17))},
        {**said(), "state": {"__ModalityConfig_class__": True, "as_json": CONFIGS["state"]}},
    ],
)
def test_an_answer_that_is_none_is_refused(answer: Any) -> None:
    """
    Two dialects at once are none.
    """
    with pytest.raises(ContractError):
        modalities_from_answer(answer)
    frame = encode_frame(answer, kind=FrameKind.METADATA)
    with pytest.raises(PolicyProtocolError):
        read_modalities(frame, policy="groot")


def test_keys_of_n1_5_without_their_modality_before_them_are_refused() -> None:
    """
    They would be sent under another name than they are asked for.
    """
    config = '{"delta_indices": [0], "modality_keys": ["front"]}'
    answer = {"video": {"__ModalityConfig_class__": True, "as_json": config}}
    with pytest.raises(DocumentError, match=r"\$\.video\.modality_keys: got \['front'\]"):
        modalities_from_answer(answer)


def test_modalities_beyond_the_four_are_read_and_left_out() -> None:
    """
    Some checkpoints name more.
    """
    extra = {"__ModalityConfig__": True, "as_json": CONFIGS["state"]}
    assert MODALITIES == modalities_from_answer({**said(), "annotation": extra})[0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: attrs.evolve(MODALITIES, video=None),
        lambda: attrs.evolve(MODALITIES, action=7),
        lambda: ActionConfig(rep="RELATIVE", type=RELATIVE.type, format=RELATIVE.format),
        lambda: attrs.evolve(RELATIVE, state_key=""),
        lambda: ModalityConfig(modality_keys="front", delta_indices=(0,)),
        lambda: ModalityConfig(modality_keys=("a",), delta_indices=0),
        lambda: ModalityConfig(modality_keys=("a",), delta_indices=(0,), action_configs=(1,)),
        lambda: ModalityConfig(
            modality_keys=("a", "b"), delta_indices=(0,), action_configs=(RELATIVE,)
        ),
        lambda: ModalityConfig(
            modality_keys=("a",), delta_indices=(0,), sin_cos_embedding_keys=("a", "a")
        ),
    ],
)
def test_contracts_of_other_things_are_refused(make: Any) -> None:
    """
    Enums are members, not their text.
    """
    with pytest.raises(ContractError):
        make()


KEYS = st.lists(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), min_size=1, max_size=4, unique=True)
CONFIG = st.builds(
    ModalityConfig,
    modality_keys=KEYS,
    delta_indices=st.lists(st.integers(-4095, 4095), min_size=1, max_size=5, unique=True).map(
        sorted
    ),
)
POLICIES = st.builds(
    PolicyModalities,
    video=CONFIG,
    action=CONFIG,
    state=st.none() | CONFIG,
    language=st.none() | CONFIG,
)


@given(modalities=POLICIES, dialect=st.sampled_from(GrootDialect))
def test_modalities_go_there_and_back(modalities: PolicyModalities, dialect: GrootDialect) -> None:
    """
    In every dialect.
    """
    answer = modalities_to_answer(modalities, dialect)
    frame = encode_frame(answer, kind=FrameKind.METADATA)
    assert (modalities, dialect) == read_modalities(frame, policy="groot")


@given(data=st.data(), dialect=st.sampled_from(GrootDialect))
def test_any_change_of_one_byte_is_modalities_or_our_error(
    data: st.DataObject, dialect: GrootDialect
) -> None:
    """
    Nothing else comes out.
    """
    frame = bytearray(golden(f"groot-{dialect.value.lower()}-modalities"))
    frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(VlmcoreError):
        read_modalities(bytes(frame), policy="groot")
