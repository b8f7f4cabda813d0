"""Sub-commands of other packages stand on what the command line offers to all of them."""

from __future__ import annotations

import ast

from architecture.tree import PACKAGES, place, walk


def test_no_adapter_uses_private_modules_of_the_command_line() -> None:
    """
    They use `vlmcore.cli.commands`, as anybody's sub-command can: two of ours had copied parts.
    """
    core, *adapters = PACKAGES
    names = [
        (place(file, node), name)
        for file, node in walk(*adapters)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in (
            [f"{node.module}.{alias.name}" for alias in node.names]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
        )
        if name.startswith(f"{core}.cli.")
    ]
    assert names, "they use what is public"
    assert [] == [where for where, name in names if any(p[:1] == "_" for p in name.split("."))]
