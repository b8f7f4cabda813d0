"""
The calls of GR00T's servers, whatever they are about: MessagePack over ZeroMQ, at both ends.

A request is a map of the endpoint, its data, and the token of who asks: there are no headers, so
the token travels in the message. An answer is whatever the endpoint gives; an error is a map with
``error`` in it, or the bytes ``ERROR`` of very old servers. There are no request ids;
`vlmcore_robotics.wire.session` knows whose turn it is.

Servers also know ``kill``, which ends them, without a token too. It is neither written nor read
here.
"""

from __future__ import annotations

import enum
import hmac
from collections.abc import Mapping
from typing import Any

from vlmcore.errors import ContractError, PolicyProtocolError, PolicyRefusedError
from vlmcore.limits import WireLimits
from vlmcore.secrets import Secret
from vlmcore_robotics.wire._blame import blamed, without, words_of
from vlmcore_robotics.wire._blobs import Parts
from vlmcore_robotics.wire.frames import FrameKind, decode_frame, encode_frame, frame_parts
from vlmcore_robotics.wire.groot_dialects import GrootDialect, modalities_from_answer
from vlmcore_robotics.wire.groot_modalities import PolicyModalities
from vlmcore_robotics.wire.ndarrays import ArraySpelling

__all__ = [
    "GrootEndpoint",
    "ask_modalities",
    "ask_ping",
    "call_parts",
    "encode_call",
    "encode_failure",
    "read_call",
    "read_modalities",
    "read_ping",
    "read_reply",
]

_UNAUTHORISED = "Unauthorized: Invalid API token"  # to the letter what GR00T's server says
_OLD_ERROR = b"ERROR"


class GrootEndpoint(enum.Enum):
    """What a server can be asked; the value is its name on the wire."""

    PING = "ping"
    GET_ACTION = "get_action"
    RESET = "reset"
    GET_MODALITY_CONFIG = "get_modality_config"


def ask_ping(*, token: Secret | None = None) -> bytes:
    """Write the question whether somebody is there; the same in every generation."""
    return encode_call(GrootEndpoint.PING, token=token)


def read_ping(
    frame: bytes, *, policy: str, token: Secret | None = None, limits: WireLimits | None = None
) -> dict[str, Any]:
    """
    Read the answer to `ask_ping`: what is said beside that somebody is there, mostly nothing.

    Raises:
        PolicyRefusedError: If the server refused, as without the right token.
        PolicyProtocolError: If it is no such answer: somebody else is there.
    """
    said = read_reply(frame, policy=policy, token=token, kind=FrameKind.METADATA, limits=limits)
    if not isinstance(said, Mapping) or said.get("status") != "ok":
        problem = "ping: got another answer than 'ok', expected a server of GR00T"
        raise PolicyProtocolError(policy, problem, "theirs")
    shown: dict[str, Any] = without(dict(said), token)
    return {key: value for key, value in shown.items() if key not in ("status", "message")}


def ask_modalities(*, token: Secret | None = None) -> bytes:
    """
    Write the question what the policy takes and gives; the same in every generation.

    It is the first thing to ask: the answer tells which dialect the server speaks.
    """
    return encode_call(GrootEndpoint.GET_MODALITY_CONFIG, token=token)


def read_modalities(
    frame: bytes, *, policy: str, token: Secret | None = None, limits: WireLimits | None = None
) -> tuple[PolicyModalities, GrootDialect]:
    """
    Read the answer to `ask_modalities`: what the policy takes and gives, and the dialect.

    Args:
        frame: What the server sent.
        policy: What the policy is called in errors.
        token: The token that was sent, which no error shows.
        limits: How large it may be.

    Raises:
        PolicyRefusedError: If the server refused.
        PolicyProtocolError: If it is no such answer.
    """
    said = read_reply(frame, policy=policy, token=token, kind=FrameKind.METADATA, limits=limits)
    return blamed(policy, token, lambda: modalities_from_answer(said))


def encode_call(
    endpoint: GrootEndpoint,
    data: Mapping[str, Any] | None = None,
    *,
    token: Secret | None = None,
    spelling: ArraySpelling = ArraySpelling.MSGPACK_NUMPY,
    limits: WireLimits | None = None,
) -> bytes:
    """
    Write a request.

    Args:
        endpoint: What is asked.
        data: What it needs; ``None`` for what needs nothing.
        token: The token; it is in the bytes as it is.
        spelling: How arrays are spelled.
        limits: How large a message may be.

    Raises:
        ContractError: If there is something in *data* that cannot be sent.
        LimitExceededError: If it is too large.
    """
    parts = call_parts(endpoint, data, token=token, spelling=spelling, limits=limits)
    return b"".join(parts)


def call_parts(
    endpoint: GrootEndpoint,
    data: Mapping[str, Any] | None = None,
    *,
    token: Secret | None = None,
    spelling: ArraySpelling = ArraySpelling.MSGPACK_NUMPY,
    limits: WireLimits | None = None,
) -> Parts:
    """
    Write a request as `encode_call`, in parts: the bytes of arrays are views, and not copied.

    Raises:
        ContractError: If there is something in *data* that cannot be sent.
        LimitExceededError: If it is too large.
    """
    request: dict[str, Any] = {"endpoint": endpoint.value}
    if data is not None:
        request["data"] = data
    if token is not None:
        request["api_token"] = token.reveal()
    return frame_parts(request, kind=FrameKind.REQUEST, spelling=spelling, limits=limits)


def read_call(
    frame: bytes, *, policy: str, token: Secret | None, limits: WireLimits | None = None
) -> tuple[GrootEndpoint, Any]:
    """
    Read a request, at the server's end.

    Args:
        frame: What a client sent.
        policy: What the policy is called in errors.
        token: The token that a client must know; ``None`` lets everybody in.
        limits: How large a message may be.

    Returns:
        What is asked, and its data.

    Raises:
        PolicyRefusedError: If the client does not know the token; the problem is what to answer.
        ContractError: If it is no such request, or asks for something else.
    """
    request = decode_frame(frame, kind=FrameKind.REQUEST, limits=limits)
    if not isinstance(request, Mapping):
        raise ContractError("request", f"got {type(request).__name__}, expected a map")
    if token is not None and not _is_same(request.get("api_token"), token):
        raise PolicyRefusedError(policy, _UNAUTHORISED)
    endpoint = request.get("endpoint", GrootEndpoint.GET_ACTION.value)
    for known in GrootEndpoint:
        if endpoint == known.value:
            return known, request.get("data")
    listed = ", ".join(known.value for known in GrootEndpoint)
    said = endpoint if isinstance(endpoint, str) else type(endpoint).__name__
    raise ContractError("request['endpoint']", f"got {said!r:.80}, expected one of {listed}")


def read_reply(
    frame: bytes,
    *,
    policy: str,
    token: Secret | None = None,
    kind: FrameKind = FrameKind.RESPONSE,
    limits: WireLimits | None = None,
) -> Any:
    """
    Read an answer, unless it says that something failed.

    Raises:
        PolicyRefusedError: If it says so; the problem is the server's words.
        PolicyProtocolError: If it is not MessagePack within the limits.
    """
    if frame == _OLD_ERROR:
        raise PolicyRefusedError(policy, "an error without words")
    reply = blamed(policy, token, lambda: decode_frame(frame, kind=kind, limits=limits))
    parts = reply if isinstance(reply, list) else [reply]
    for part in parts:
        if isinstance(part, Mapping) and part.get("error") is not None:
            raise PolicyRefusedError(policy, words_of(part["error"], token))
    return reply


def encode_failure(words: str, *, limits: WireLimits | None = None) -> bytes:
    """Write that something failed; *words* are what the client may know, cut and on one line."""
    return encode_frame({"error": words_of(words, None)}, kind=FrameKind.RESPONSE, limits=limits)


def _is_same(said: Any, token: Secret) -> bool:
    """Compare in a time that does not tell how much of it is right."""
    sent = said.encode() if isinstance(said, str) else b""
    return hmac.compare_digest(sent, token.reveal().encode())
