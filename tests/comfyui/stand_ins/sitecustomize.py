"""
Lets a ComfyUI start where there is no torchvision and no torchaudio; Python runs this by its name.

ComfyUI imports both when it starts, for models that our graphs never load, and neither can be had
beside every build of torch. Every module under them can be imported then, and every name in one is
a class that does nothing. transformers is asked first, so that it knows that they are not there.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any

_PRETENDED = ("torchvision", "torchaudio")


class _Pretended(ModuleType):
    """A module in which every name is a class that does nothing."""

    __path__: list[str] = []  # noqa: RUF012 - what makes it a package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        del path, target
        if name.partition(".")[0] in _PRETENDED:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> ModuleType:
        return _Pretended(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        del module


if not any(map(importlib.util.find_spec, _PRETENDED)):
    from transformers.utils import import_utils

    for ask in (
        import_utils.is_torchvision_available,
        import_utils.is_torchvision_v2_available,
        import_utils.is_torchaudio_available,
    ):
        ask()
    sys.meta_path.append(_Finder())
