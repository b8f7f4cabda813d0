"""The pack is put into a ComfyUI once, and taken out again; nothing of others is touched."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

import vlmcore_comfy
from vlmcore.errors import ContractError
from vlmcore_comfy.installing import PACK, install_pack, uninstall_pack

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]


@pytest.fixture
def comfyui(tmp_path: Path) -> Path:
    (tmp_path / "custom_nodes").mkdir()
    return tmp_path


def test_it_is_written_once(comfyui: Path) -> None:
    """
    However often it is asked for.
    """
    pack, is_new = install_pack(comfyui)
    assert is_new
    assert (pack / "__init__.py").read_text() == PACK
    assert install_pack(str(comfyui)) == (pack, False)
    assert [each.name for each in pack.iterdir()] == ["__init__.py"]


def test_what_an_older_version_wrote_is_renewed(comfyui: Path) -> None:
    """
    It is ours by what it imports.
    """
    pack, _ = install_pack(comfyui)
    (pack / "__init__.py").write_text("from vlmcore_comfy import WEB_DIRECTORY\n")
    assert install_pack(comfyui) == (pack, True)
    assert (pack / "__init__.py").read_text() == PACK


def test_it_is_taken_out_with_what_python_left_there(comfyui: Path) -> None:
    """
    And a second time there is nothing to do.
    """
    pack, _ = install_pack(comfyui)
    (pack / "__pycache__").mkdir()
    assert uninstall_pack(comfyui) == (pack, True)
    assert not pack.exists()
    assert uninstall_pack(comfyui) == (pack, False)


def test_what_others_put_there_stays(comfyui: Path) -> None:
    """
    A clone of something, a file, a link: each is told, and left alone.
    """
    pack = comfyui / "custom_nodes" / "vlmcore"
    pack.mkdir()
    (pack / "mine.py").write_text("x = 1")
    for change in (install_pack, uninstall_pack):
        with pytest.raises(ContractError, match="holds what this command did not write"):
            change(comfyui)
    assert (pack / "mine.py").read_text() == "x = 1"


def test_a_link_in_the_place_of_the_pack_is_not_followed(comfyui: Path, tmp_path: Path) -> None:
    """
    Removing it would remove what it leads to.
    """
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "__init__.py").write_text(PACK)
    (comfyui / "custom_nodes" / "vlmcore").symlink_to(elsewhere)
    for change in (install_pack, uninstall_pack):
        with pytest.raises(ContractError, match="is a link"):
            change(comfyui)
    assert (elsewhere / "__init__.py").exists()


def test_what_is_no_comfyui_is_told(tmp_path: Path) -> None:
    """
    What is missing is named.
    """
    with pytest.raises(ContractError, match="holds no folder custom_nodes"):
        install_pack(tmp_path)
    with pytest.raises(ContractError, match="does not exist, expected the folder of a ComfyUI"):
        install_pack(tmp_path / "nowhere")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_told(comfyui: Path) -> None:
    """
    In the words of the system.
    """
    (comfyui / "custom_nodes").chmod(0o500)
    with pytest.raises(ContractError, match="permission denied"):
        install_pack(comfyui)


def test_what_comfyui_clones_is_what_is_written() -> None:
    """
    The folder for the registry and the command give the same three lines.
    """
    assert (ROOT / "comfy_pack" / "__init__.py").read_text(encoding="utf-8") == PACK


def test_the_folder_for_the_registry_keeps_its_rules() -> None:
    """
    A version of three numbers, no ComfyUI in the name, no link and nothing compiled.
    """
    pack = ROOT / "comfy_pack"
    said = tomllib.loads((pack / "pyproject.toml").read_text(encoding="utf-8"))
    assert re.fullmatch(r"\d+\.\d+\.\d+", said["project"]["version"])
    assert "comfyui" not in said["project"]["name"].lower()
    assert {"PublisherId", "DisplayName"} <= set(said["tool"]["comfy"])
    files = {each for each in pack.rglob("*") if "__pycache__" not in each.parts}
    assert {each.name for each in files} == {
        "__init__.py",
        "README.md",
        "pyproject.toml",
        "requirements.txt",
    }
    assert not any(each.is_symlink() for each in files)
    wanted = (pack / "requirements.txt").read_text(encoding="utf-8").split()
    assert wanted == said["project"]["dependencies"]


def test_the_page_is_given_its_parts_from_the_package() -> None:
    """
    ComfyUI serves an absolute folder; its scripts load nothing from elsewhere.
    """
    web = Path(vlmcore_comfy.WEB_DIRECTORY)
    assert web.is_absolute()
    scripts = sorted(web.glob("*.js"))
    assert [each.name for each in scripts] == ["sounds.js", "texts.js"]
    for script in scripts:
        text = script.read_text(encoding="utf-8")
        assert set(re.findall(r'from "([^"]+)"', text)) == {
            "../../scripts/api.js",
            "../../scripts/app.js",
        }
        assert not re.search(r"innerHTML|eval\(|new Function|https?://", text)
