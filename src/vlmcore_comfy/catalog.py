"""All nodes, theme by theme; a theme that cannot be read takes no other with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from vlmcore_comfy.declaring import Node

__all__ = ["BrokenTheme", "Catalog", "load_catalog"]


@attrs.frozen
class BrokenTheme:
    """
    Nodes that are not there, since the module that declares them cannot be read.

    Attributes:
        theme: What they are about.
        reason: What went wrong.
    """

    theme: str
    reason: str


@attrs.frozen
class Catalog:
    """
    The nodes of this installation.

    Attributes:
        nodes: Every node, by its id.
        broken: What is missing.
    """

    nodes: dict[str, Node[..., Any]]
    broken: tuple[BrokenTheme, ...]


def load_catalog() -> Catalog:
    """Read the declarations of every theme."""
    nodes: dict[str, Node[..., Any]] = {}
    broken = []
    for theme, load in _THEMES.items():
        loaded = _loaded(theme, load)
        if isinstance(loaded, BrokenTheme):
            broken.append(loaded)
        else:
            nodes.update({each.id: each for each in loaded})
    return Catalog(nodes, tuple(broken))


def _loaded(
    theme: str, load: Callable[[], tuple[Node[..., Any], ...]]
) -> tuple[Node[..., Any], ...] | BrokenTheme:
    try:
        return load()
    except Exception as error:  # noqa: BLE001 - whatever a broken installation raises
        return BrokenTheme(theme, f"{type(error).__name__}: {error}")


def _embodiments() -> tuple[Node[..., Any], ...]:
    from vlmcore_comfy.nodes.embodiments import NODES

    return NODES


def _observations() -> tuple[Node[..., Any], ...]:
    from vlmcore_comfy.nodes.observations import NODES

    return NODES


def _policies() -> tuple[Node[..., Any], ...]:
    from vlmcore_comfy.nodes.policies import NODES

    return NODES


def _safety() -> tuple[Node[..., Any], ...]:
    from vlmcore_comfy.nodes.safety import NODES

    return NODES


def _actions() -> tuple[Node[..., Any], ...]:
    from vlmcore_comfy.nodes.actions import NODES

    return NODES


def _robot_records() -> tuple[Node[..., Any], ...]:
    from vlmcore_comfy.nodes.robot_records import NODES

    return NODES


def _texts() -> tuple[Node[..., Any], ...]:
    from vlmcore_comfy.nodes.texts import NODES

    return NODES


def _text_changes() -> tuple[Node[..., Any], ...]:
    from vlmcore_comfy.nodes.text_changes import NODES

    return NODES


def _json_texts() -> tuple[Node[..., Any], ...]:
    from vlmcore_comfy.nodes.json_texts import NODES

    return NODES


def _models() -> tuple[Node[..., Any], ...]:
    from vlmcore_comfy.nodes.models import NODES

    return NODES


def _weights() -> tuple[Node[..., Any], ...]:
    from vlmcore_comfy.nodes.weights import NODES

    return NODES


def _datasets() -> tuple[Node[..., Any], ...]:
    from vlmcore_comfy.nodes.datasets import NODES

    return NODES


def _hosted() -> tuple[Node[..., Any], ...]:
    from vlmcore_comfy.nodes.hosted import NODES

    return NODES


def _pixels() -> tuple[Node[..., Any], ...]:
    from vlmcore_comfy.nodes.pixels import NODES

    return NODES


def _videos() -> tuple[Node[..., Any], ...]:
    from vlmcore_comfy.nodes.videos import NODES

    return NODES


def _detection() -> tuple[Node[..., Any], ...]:
    from vlmcore_comfy.nodes.detection import NODES

    return NODES


def _video_reasoning() -> tuple[Node[..., Any], ...]:
    from vlmcore_comfy.nodes.video_reasoning import NODES

    return NODES


def _audio() -> tuple[Node[..., Any], ...]:
    from vlmcore_comfy.nodes.audio import NODES

    return NODES


def _diagnostics() -> tuple[Node[..., Any], ...]:
    from vlmcore_comfy.nodes.diagnostics import NODES

    return NODES


_THEMES: dict[str, Callable[[], tuple[Node[..., Any], ...]]] = {
    "robots": _embodiments,
    "observations": _observations,
    "policies": _policies,
    "the safety gate": _safety,
    "actions": _actions,
    "recording robots": _robot_records,
    "texts": _texts,
    "changing texts": _text_changes,
    "JSON": _json_texts,
    "models": _models,
    "weights": _weights,
    "datasets": _datasets,
    "hosted models": _hosted,
    "pixels": _pixels,
    "videos": _videos,
    "detection": _detection,
    "video reasoning": _video_reasoning,
    "audio": _audio,
    "diagnostics": _diagnostics,
}
