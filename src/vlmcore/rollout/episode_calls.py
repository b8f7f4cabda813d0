"""What is recorded of a call: what was shown, how long it took, and that it failed."""

from __future__ import annotations

import hashlib
from typing import Any

import attrs
import numpy as np

from vlmcore._arguments import require_kind, shown
from vlmcore._arrays import plain_float, require_finite, require_text
from vlmcore._copying import through_constructor
from vlmcore.contracts.observation import Observation, ObservationSummary
from vlmcore.errors import ContractError
from vlmcore.limits import DocumentLimits, require_at_most

__all__ = ["EpisodeFailure", "PolicyCall", "digest_of"]

_DIGITS = frozenset("0123456789abcdef")
_DIGEST_DIGITS = 64


def digest_of(observation: Observation) -> str:
    """
    Sum up what a policy was shown: equal for equal observations, whenever they were made.

    The instruction, the state, the rate of the frames and every pixel count, by the names of the
    cameras in any order; the time does not. Frames that were encoded with loss on their way are
    other ones.

    Returns:
        SHA-256, 64 hexadecimal digits.

    Raises:
        ContractError: If it is no observation.

    Example:
        >>> import attrs
        >>> from vlmcore.contracts.presets import find_embodiment
        >>> from vlmcore.testing import example_observation
        >>> seen = example_observation(find_embodiment("aloha_bimanual_template"))
        >>> digest_of(seen) == digest_of(attrs.evolve(seen, captured_at_s=9.0))
        True
        >>> digest_of(seen) == digest_of(attrs.evolve(seen, instruction="stop"))
        False
    """
    if not isinstance(observation, Observation):
        raise ContractError(
            "observation", f"got {type(observation).__name__}, expected an Observation"
        )
    found = hashlib.sha256()

    def add(part: bytes | memoryview) -> None:
        found.update(len(part).to_bytes(8, "big"))  # where one part ends and the next begins
        found.update(part)

    add(observation.instruction.encode("utf-8", "surrogatepass"))
    add(np.asarray(observation.state, "<f8").tobytes())
    add(np.asarray(observation.frame_rate_hz, "<f8").tobytes())
    for name, frames in sorted(observation.images.items()):
        add(name.encode("utf-8", "surrogatepass"))
        add(repr(frames.shape).encode())
        add(np.ascontiguousarray(frames).reshape(-1).data)
    return found.hexdigest()


@attrs.frozen(kw_only=True)
class PolicyCall:
    """
    How a policy was asked.

    Attributes:
        digest: What `digest_of` says of the observation.
        took_s: How long the policy took, in seconds of the caller's monotonic clock.

    Raises:
        ContractError: If a field is not as described.
    """

    digest: str
    took_s: float = attrs.field(converter=plain_float)

    def __attrs_post_init__(self) -> None:
        digest = self.digest
        if not (isinstance(digest, str) and len(digest) == _DIGEST_DIGITS and {*digest} <= _DIGITS):
            raise ContractError(
                "digest", f"got {shown(digest)}, expected {_DIGEST_DIGITS} hexadecimal digits"
            )
        require_finite(took_s=self.took_s)
        if self.took_s < 0:
            raise ContractError("took_s", f"got {self.took_s:g}, expected at least 0")


@attrs.frozen(kw_only=True)
class EpisodeFailure:
    """
    A call that a policy did not answer: it stands between the steps of an episode.

    Attributes:
        at_s: Reading of the caller's monotonic clock when it had failed.
        observation: What the policy was shown, without the pixels.
        error: What went wrong, for people.
        call: How the policy was asked; ``None`` if nobody says.

    Raises:
        ContractError: If a field is not as described.
    """

    at_s: float = attrs.field(converter=plain_float)
    observation: ObservationSummary
    error: str
    call: PolicyCall | None = None

    def __attrs_post_init__(self) -> None:
        require_finite(at_s=self.at_s)
        require_text(error=self.error)
        require_at_most(
            "max_error_characters", len(self.error), DocumentLimits().max_error_characters
        )
        require_kind("observation", self.observation, ObservationSummary)
        require_call(self.call)

    __reduce__ = through_constructor


def require_call(call: Any) -> None:
    """
    Require what says how a policy was asked, or ``None``.

    Raises:
        ContractError: If it is something else.
    """
    if call is not None:
        require_kind("call", call, PolicyCall)
