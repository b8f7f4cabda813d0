"""What a server of the HTTP protocol says about itself, and what one of old leaves unsaid."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, TypeVar

import attrs

from vlmcore._arguments import require_switch
from vlmcore._arrays import as_tuple
from vlmcore.errors import ContractError
from vlmcore.policy.interface import PolicyInfo
from vlmcore_robotics.wire.http_frames import WireEncoding
from vlmcore_robotics.wire.http_messages import ContentType
from vlmcore_robotics.wire.policy_info import info_from_metadata, metadata_from_info

__all__ = ["HttpServerInfo", "metadata_document", "server_info_from"]

_KEY = "http"
_Member = TypeVar("_Member", bound=enum.Enum)


@attrs.frozen(kw_only=True)
class HttpServerInfo:
    """
    What a server says: of the policy, and of what it speaks.

    Attributes:
        policy: What the policy says about itself.
        encodings: The encodings of frames that it reads; servers of old read JPEG only.
        content_types: The types of bodies that it reads and writes; those of old know JSON only.
        has_sessions: Whether it knows sessions, and can be told that the episode of one ends.
        keeps_sessions_apart: Whether each session has a policy of its own; if not, the policy is
            one for all, and whoever resets it resets it for all. ``None`` if it does not say.

    Raises:
        ContractError: If a field is not as described.
    """

    policy: PolicyInfo
    encodings: tuple[WireEncoding, ...] = attrs.field(
        default=(WireEncoding.JPEG,), converter=as_tuple
    )
    content_types: tuple[ContentType, ...] = attrs.field(
        default=(ContentType.JSON,), converter=as_tuple
    )
    has_sessions: bool = False
    keeps_sessions_apart: bool | None = None

    def __attrs_post_init__(self) -> None:
        policy: Any = self.policy
        if not isinstance(policy, PolicyInfo):
            raise ContractError("policy", f"got {type(policy).__name__}, expected a PolicyInfo")
        _require_members("encodings", self.encodings, WireEncoding)
        _require_members("content_types", self.content_types, ContentType)
        require_switch(has_sessions=self.has_sessions)
        if self.keeps_sessions_apart is not None:
            require_switch(keeps_sessions_apart=self.keeps_sessions_apart)

    def require_speaks(self, *, encoding: WireEncoding, content_type: ContentType) -> None:
        """
        Check that the server understands what a client is about to send.

        Raises:
            ContractError: If it does not.
        """
        for field, wanted, known in (
            ("encoding", encoding, self.encodings),
            ("content_type", content_type, self.content_types),
        ):
            if wanted not in known:
                listed = ", ".join(each.value for each in known)
                raise ContractError(
                    field, f"got {wanted.value}, which the server does not know, expected {listed}"
                )


def _require_members(field: str, members: Any, kind: type[enum.Enum]) -> None:
    good = isinstance(members, tuple) and all(isinstance(each, kind) for each in members)
    if not (good and members):
        raise ContractError(field, f"got {members!r:.80}, expected one {kind.__name__} or more")


def metadata_document(server: HttpServerInfo) -> dict[str, Any]:
    """Write what a server says; peers that do not know the key ``http`` pass it over."""
    said: dict[str, Any] = {
        "encodings": [each.value for each in server.encodings],
        "content_types": [each.value for each in server.content_types],
        "sessions": server.has_sessions,
    }
    if server.keeps_sessions_apart is not None:
        said["sessions_apart"] = server.keeps_sessions_apart
    return {**metadata_from_info(server.policy), _KEY: said}


def server_info_from(value: Any, *, policy: str) -> HttpServerInfo:
    """
    Read what a server says. Those of old say nothing of what they speak.

    Encodings and types that are not known here are passed over: a newer server may know more.

    Args:
        value: What was decoded.
        policy: What the policy is called on this side.

    Raises:
        ContractError: If it is not such a document.
    """
    if not isinstance(value, Mapping):
        raise ContractError("metadata", f"got {type(value).__name__}, expected an object")
    info = info_from_metadata(value, name=policy)
    said = value.get(_KEY)
    if said is None:
        return HttpServerInfo(policy=info)
    if not isinstance(said, Mapping):
        raise ContractError(_KEY, f"got {type(said).__name__}, expected an object")
    return HttpServerInfo(
        policy=info,
        encodings=_known(WireEncoding, said, "encodings"),
        content_types=_known(ContentType, said, "content_types"),
        has_sessions=said.get("sessions", False),
        keeps_sessions_apart=said.get("sessions_apart"),
    )


def _known(kind: type[_Member], said: Mapping[str, Any], key: str) -> tuple[_Member, ...]:
    words = said.get(key)
    if not isinstance(words, list):
        raise ContractError(f"{_KEY}.{key}", f"got {type(words).__name__}, expected a list")
    return tuple(member for member in kind if member.value in words)
