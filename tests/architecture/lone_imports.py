"""
Import each module of a list as the first of ours, and say which do not import.

A program: ``python lone_imports.py MODULES PACKAGES``, both lists in JSON. To import ``a.b.c`` is
to import ``a``, then ``a.b``, then the rest. So one process imports ``a`` for all that is in it,
and forks for each of them that ``a`` has not loaded itself: none has ever loaded what a fresh
process would not have.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
from collections.abc import Sequence


def load_what_is_of_others(names: Sequence[str], packages: Sequence[str]) -> None:
    """Import what *names* need from elsewhere, and none of ours: it is loaded once for them all."""
    told, heard = os.pipe()
    if os.fork() == 0:
        for name in names:
            with contextlib.suppress(BaseException):  # said when it is imported on its own
                importlib.import_module(name)
        os.write(heard, json.dumps(list(sys.modules)).encode())
        os._exit(0)
    os.close(heard)
    with os.fdopen(told) as pipe:
        loaded = json.load(pipe)
    os.wait()
    for name in loaded:
        if name.partition(".")[0] not in packages:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


def import_inside(package: str, names: Sequence[str]) -> bool:
    """Import those of *names* that are in *package*, each on its own; say whether all went well."""
    start = f"{package}." if package else ""
    inside = {
        name.removeprefix(start).partition(".")[0] for name in names if name.startswith(start)
    }
    went_well = [import_alone(start + name, names) for name in sorted(inside)]
    return all(went_well)


def import_alone(module: str, names: Sequence[str]) -> bool:
    """Import *module*, in a fork unless its package has loaded it, then what is in it."""
    if module in sys.modules:
        return import_inside(module, names)
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    try:
        importlib.import_module(module)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it does not import
        os.write(1, f"{module} {error!r}\n".encode())
        os._exit(1)
    os._exit(not import_inside(module, names))


if __name__ == "__main__":
    modules, ours = map(json.loads, sys.argv[1:])
    load_what_is_of_others(modules, ours)
    sys.exit(not import_inside("", modules))
