"""
Modules of any name and any content, under a package that is not installed.

ComfyUI imports torchvision and torchaudio when it starts, for models that our graphs never load;
neither can be had beside every build of torch.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Any


class Pretended(ModuleType):
    """A module in which every name is a class that does nothing."""

    __path__: list[str] = []  # noqa: RUF012 - what makes it a package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, package: str) -> None:
        self._prefix = f"{package}."

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        del path, target
        if name.startswith(self._prefix):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> ModuleType:
        return Pretended(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        del module


def pretend(package: str) -> None:
    """Let every module under *package* be imported."""
    sys.meta_path.insert(0, _Finder(package))
    sys.modules[package].__class__ = Pretended
