"""The models of MiniMax, and how long the texts for each may be."""

from __future__ import annotations

import attrs

from vlmcore.errors import ContractError
from vlmcore_audio.music import MusicRequest

__all__ = ["MODELS", "MusicModel", "model_of"]


@attrs.frozen(kw_only=True)
class MusicModel:
    """
    A model, and what it takes.

    Attributes:
        name: What the service calls it.
        is_for_covers: Whether it makes covers; the others make pieces of their own.
        prompt_characters: The fewest and the most characters of a prompt.
        lyrics_characters: The fewest and the most of lyrics, where there are some.
    """

    name: str
    is_for_covers: bool
    prompt_characters: tuple[int, int]
    lyrics_characters: tuple[int, int]


def _piece(name: str) -> MusicModel:
    return MusicModel(
        name=name,
        is_for_covers=False,
        prompt_characters=(0, 2000),
        lyrics_characters=(1, 3500),
    )


def _cover(name: str) -> MusicModel:
    return MusicModel(
        name=name,
        is_for_covers=True,
        prompt_characters=(10, 300),
        lyrics_characters=(10, 1000),
    )


#: By name; the first of each kind is the default.
MODELS = {
    model.name: model
    for model in (
        _piece("music-3.0"),
        _piece("music-2.6"),
        _piece("music-3.0-free"),
        _piece("music-2.6-free"),
        _cover("music-cover"),
        _cover("music-cover-free"),
    )
}


def model_of(request: MusicRequest) -> MusicModel:
    """
    Choose the model of a request, and check that the request is one for it.

    Raises:
        ContractError: If it is not, or there is no such model.
    """
    fitting = {name: m for name, m in MODELS.items() if m.is_for_covers is request.is_cover}
    name = next(iter(fitting)) if request.model is None else request.model
    if name not in fitting:
        kind = "covers" if request.is_cover else "pieces of their own"
        raise ContractError(
            "model", f"got {name[:80]!r}, expected one for {kind}: {', '.join(fitting)}"
        )
    model = fitting[name]
    _require_length("prompt", request.prompt, model.prompt_characters)
    if request.lyrics:
        _require_length("lyrics", request.lyrics, model.lyrics_characters)
    return model


def _require_length(field: str, text: str, characters: tuple[int, int]) -> None:
    least, most = characters
    if not least <= len(text) <= most:
        raise ContractError(field, f"got {len(text)} characters, expected {least} to {most}")
