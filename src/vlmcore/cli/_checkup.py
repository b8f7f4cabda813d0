"""What ``vlmcore doctor`` finds out; importing nothing that is not needed for it."""

from __future__ import annotations

import argparse
import os
import platform
import time
from typing import Any

import attrs
import numpy as np

import vlmcore
from vlmcore._extras import EXTRAS, Extra, installed_version, look_at
from vlmcore.cli._loading import LoadPredictor
from vlmcore.cli._plugins import BrokenCommand, add_plugin_commands
from vlmcore.errors import MissingDependencyError, VlmcoreError
from vlmcore.vlm.devices import Device, accelerators, host
from vlmcore.vlm.generation import GenerationOptions
from vlmcore.vlm.placement import Attention, Dtype, MemoryMode
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.remote.providers import find_provider
from vlmcore.vlm.sources import EMBEDDED

__all__ = ["Checkup", "Finding", "examine"]

_SHOWN = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HOME", "CUDA_VISIBLE_DEVICES")
_SECRET = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
_CORE = ("numpy", "attrs")
_SHOWN_MODELS = 20


@attrs.frozen
class Finding:
    """
    Something that was tried.

    Attributes:
        works: Whether it works; ``None`` if it could not be tried.
        text: What was seen, in words.
    """

    works: bool | None
    text: str


@attrs.frozen(kw_only=True)
class Checkup:
    """
    An installation as it was found.

    Attributes:
        versions: Python, vlmcore and what it always needs.
        platform: The operating system and processor.
        devices: Where models can run, the one that is taken first.
        no_accelerators: Why accelerators could not be looked for; empty if they were.
        extras: What is there of each extra.
        environment: Settings that models are loaded by. Secrets are only said to be set.
        embedded: Whether the embedded model answers.
        broken_commands: Plug-ins that could not add their command.
        server: What the server that was named has; ``None`` if none was.
    """

    versions: dict[str, str]
    platform: str
    devices: tuple[Device, ...]
    no_accelerators: str
    extras: tuple[Extra, ...]
    environment: dict[str, str]
    embedded: Finding
    broken_commands: tuple[BrokenCommand, ...]
    server: Finding | None = None

    @property
    def is_sound(self) -> bool:
        """Whether what was tried works; what is not installed is no fault."""
        tried = (self.embedded, self.server)
        return all(each is None or each.works is not False for each in tried)

    def document(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        document: dict[str, Any] = attrs.asdict(self)
        for extra, found in zip(document["extras"], self.extras, strict=True):
            extra["complete"] = found.is_complete
        return {**document, "sound": self.is_sound}


def examine(*, load: LoadPredictor, server: str | None = None) -> Checkup:
    """Look at everything; *load* loads the embedded model; *server* is asked what it has."""
    found, no_accelerators = _accelerators()
    extras = tuple(look_at(name) for name in EXTRAS)
    throwaway = argparse.ArgumentParser().add_subparsers()
    return Checkup(
        versions=_versions(),
        platform=platform.platform(),
        devices=(*found, host()),
        no_accelerators=no_accelerators,
        extras=extras,
        environment=_environment(),
        embedded=_try_embedded(load),
        broken_commands=add_plugin_commands(throwaway),
        server=None if server is None else _try_server(server),
    )


def _versions() -> dict[str, str]:
    core = {name: installed_version(name) or "not installed" for name in _CORE}
    return {"vlmcore": vlmcore.__version__, "Python": platform.python_version(), **core}


def _accelerators() -> tuple[tuple[Device, ...], str]:
    try:
        return accelerators(), ""
    except MissingDependencyError as error:
        return (), f"other devices are not looked for: {error}"
    except Exception as error:  # noqa: BLE001 - a broken driver or torch is what a doctor reports
        return (), f"torch cannot be used: {type(error).__name__}: {error}"


def _environment() -> dict[str, str]:
    shown = {name: os.environ.get(name, "not set") for name in _SHOWN}
    secret = {name: "set (not shown)" if os.environ.get(name) else "not set" for name in _SECRET}
    return shown | secret


def _try_embedded(load: LoadPredictor) -> Finding:
    began_s = time.monotonic()
    white = np.full((64, 64, 3), 255, np.uint8)
    prompt = Prompt(text="Describe this image in one sentence.", images=(white,))
    try:
        predictor = load(
            EMBEDDED,
            device="auto",
            dtype=Dtype.AUTO,
            memory=MemoryMode.MANAGED,
            attention=Attention.AUTO,
        )
        with predictor:
            predictor.generate(prompt, GenerationOptions(max_new_tokens=8))
            info = predictor.info
    except MissingDependencyError as error:
        return Finding(works=None, text=f"not tried: {error}")
    except Exception as error:  # noqa: BLE001 - whatever is wrong with it is the finding
        return Finding(works=False, text=f"fails: {type(error).__name__}: {error}")
    took_s = time.monotonic() - began_s
    return Finding(works=True, text=f"answers on {info.device}, {took_s:.1f} s with loading")


def _try_server(server: str) -> Finding:
    from vlmcore.vlm.remote.listing import list_models  # noqa: PLC0415 - what is of the network

    began_s = time.monotonic()
    is_provider = find_provider(server) is not None
    try:
        if is_provider:
            models = list_models(provider=server)
        else:
            models = list_models(server.partition("#")[0])
    except MissingDependencyError as error:
        return Finding(works=None, text=f"not tried: {error}")
    except VlmcoreError as error:
        return Finding(works=False, text=str(error))
    took_s = time.monotonic() - began_s
    shown = ", ".join(models[:_SHOWN_MODELS]) + (" ..." if len(models) > _SHOWN_MODELS else "")
    return Finding(works=True, text=f"answers in {took_s:.2f} s, and has {shown or 'no model'}")
