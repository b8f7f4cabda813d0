"""Makes the nodes known to a ComfyUI: it looks for packs only in its folder ``custom_nodes``."""

from __future__ import annotations

import shutil
from pathlib import Path

from vlmcore._whole_files import what_failed, write_whole
from vlmcore.errors import ContractError

__all__ = ["PACK", "install_pack", "uninstall_pack"]

PACK = '''\
"""The nodes of vlmcore: https://pypi.org/project/vlmcore."""

from vlmcore_comfy import WEB_DIRECTORY, comfy_entrypoint

__all__ = ["WEB_DIRECTORY", "comfy_entrypoint"]
'''
"""All that the folder of the pack holds."""

_NAME = "vlmcore"
_MARK = "from vlmcore_comfy import "


def install_pack(comfyui: Path | str) -> tuple[Path, bool]:
    """
    Write the folder of the pack into a ComfyUI; one that is there already stays as it is.

    Args:
        comfyui: The folder of ComfyUI, or the base folder that it is started with; what holds
            ``custom_nodes``.

    Returns:
        The folder of the pack, and whether anything was written.

    Raises:
        ContractError: If it is no ComfyUI, something else is in the place of the pack, or it cannot
            be written.
    """
    pack = _place(comfyui)
    file = pack / "__init__.py"
    _require_ours(pack)
    try:
        if file.is_file() and file.read_text(encoding="utf-8") == PACK:
            return pack, False
        pack.mkdir(exist_ok=True)
    except (OSError, UnicodeDecodeError) as error:
        raise ContractError(str(pack), _problem(error)) from None
    write_whole(str(file), PACK.encode())
    return pack, True


def uninstall_pack(comfyui: Path | str) -> tuple[Path, bool]:
    """
    Take the folder of the pack out of a ComfyUI.

    Returns:
        The folder of the pack, and whether it was there.

    Raises:
        ContractError: If it is no ComfyUI, what is there is not of the pack, or it cannot be
            removed.
    """
    pack = _place(comfyui)
    if not pack.is_symlink() and not pack.exists():
        return pack, False
    _require_ours(pack)
    try:
        shutil.rmtree(pack)
    except OSError as error:
        raise ContractError(str(pack), what_failed(error)) from None
    return pack, True


def _place(comfyui: Path | str) -> Path:
    folder = Path(comfyui).expanduser()
    nodes = folder / "custom_nodes"
    if not nodes.is_dir():
        is_there = folder.exists()
        raise ContractError(
            str(folder),
            "holds no folder custom_nodes, expected the folder of a ComfyUI"
            if is_there
            else "does not exist, expected the folder of a ComfyUI",
        )
    return nodes / _NAME


def _require_ours(pack: Path) -> None:
    """Require that nothing is in the place of the pack, or what we wrote, perhaps long ago."""
    if pack.is_symlink():
        raise ContractError(str(pack), "is a link, expected a folder that this command wrote")
    if not pack.exists():
        return
    try:
        names = {entry.name for entry in pack.iterdir()} - {"__pycache__"}
        is_ours = names <= {"__init__.py"} and (
            not names or _MARK in (pack / "__init__.py").read_text(encoding="utf-8")
        )
    except (OSError, UnicodeDecodeError) as error:
        raise ContractError(str(pack), _problem(error)) from None
    if not is_ours:
        raise ContractError(
            str(pack), "holds what this command did not write; move it away, then try again"
        )


def _problem(error: OSError | UnicodeDecodeError) -> str:
    return what_failed(error) if isinstance(error, OSError) else "holds what is no UTF-8"
