"""What MiniMax makes of a recording, to make covers of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import attrs

from vlmcore.errors import MusicProtocolError
from vlmcore_audio.minimax._service import SERVICE

__all__ = ["CoverFeature"]


@attrs.frozen(kw_only=True)
class CoverFeature:
    """
    A recording that the service has looked at; it knows it for 24 hours.

    Attributes:
        feature_id: What the service calls it; for `vlmcore_audio.music.Reference`.
        lyrics: What is sung, as a request takes it; may be empty.
        structure: Its parts, as the service writes them; may be empty.
        duration_s: How long it is, in seconds; ``None`` if not told.
    """

    feature_id: str
    lyrics: str
    structure: str
    duration_s: float | None

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> CoverFeature:
        """
        Read an answer.

        Raises:
            MusicProtocolError: If it is none.
        """
        data = fields.get("data")
        told: Mapping[str, Any] = data if isinstance(data, dict) and data else fields
        feature_id = told.get("cover_feature_id")
        lyrics, structure = told.get("formatted_lyrics"), told.get("structure_result")
        duration_s = told.get("audio_duration")
        if not isinstance(feature_id, str) or not feature_id:
            raise MusicProtocolError(SERVICE, "cover_feature_id: got none, expected text")
        for name, text in (("formatted_lyrics", lyrics), ("structure_result", structure)):
            if text is not None and not isinstance(text, str):
                got = type(text).__name__
                raise MusicProtocolError(SERVICE, f"{name}: got {got}, expected text")
        if duration_s is not None:
            is_number = type(duration_s) in (int, float)
            if not is_number or not 0 <= duration_s < math.inf:
                got = f"{duration_s!r:.40}" if is_number else type(duration_s).__name__
                raise MusicProtocolError(SERVICE, f"audio_duration: got {got}, expected seconds")
        return cls(
            feature_id=feature_id,
            lyrics=lyrics or "",
            structure=structure or "",
            duration_s=None if duration_s is None else float(duration_s),
        )
