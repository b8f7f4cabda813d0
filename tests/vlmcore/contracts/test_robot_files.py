"""A robot that is named by a word: a template, or a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vlmcore.contracts.documents import embodiment_to_json
from vlmcore.contracts.presets import PRESETS
from vlmcore.contracts.robot_files import read_embodiment
from vlmcore.errors import ContractError, DocumentError, LimitExceededError
from vlmcore.limits import DocumentLimits

ALOHA = PRESETS["ALOHA bimanual template"]


@pytest.mark.parametrize("label", PRESETS)
def test_a_template_has_two_names(label: str) -> None:
    """
    Also the one with a slash in its label.
    """
    assert PRESETS[label] == read_embodiment(label) == read_embodiment(PRESETS[label].name)


@pytest.mark.parametrize("name", ["robot.json", "robot", "a robot"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_file_is_read_from_the_folder_that_is_meant(tmp_path: Path, name: str, mark: str) -> None:
    """
    Whatever it is called, and with the mark that Windows writes.
    """
    (tmp_path / name).write_text(mark + embodiment_to_json(ALOHA), encoding="utf-8")
    assert ALOHA == read_embodiment(name, folder=tmp_path)
    assert ALOHA == read_embodiment(str(tmp_path / name))


@pytest.mark.parametrize("word", ["nope.json", "nope.yaml", "robots/nope", "./nope", "~/nope", "-"])
def test_a_file_that_is_not_there_is_not_looked_up_among_the_templates(
    tmp_path: Path, word: str
) -> None:
    """
    A typing error in a path was answered with a list of templates.
    """
    with pytest.raises(ContractError) as error:
        read_embodiment(word, folder=tmp_path)
    assert word == error.value.field
    assert error.value.problem.startswith("does not exist")


@pytest.mark.parametrize(
    "word", ["so100", "", " ", "\0", "a" * 5000, "LeRobot SO-100 / SO-10", None, 7]
)
def test_what_is_neither_is_told_of_both(word) -> None:
    """
    The nearest templates, and that there could be a path.
    """
    with pytest.raises(ContractError, match=r"\(or the path of an embodiment document\)") as error:
        read_embodiment(word)
    assert "name" == error.value.field


def test_only_a_regular_file_is_read(tmp_path: Path) -> None:
    """
    A named pipe would be waited for.
    """
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for word, problem in (("pipe", "is no regular file"), ("folder", "is a folder")):
        with pytest.raises(ContractError, match=f"^{word}: {problem}, expected"):
            read_embodiment(word, folder=tmp_path)
    with pytest.raises(
        ContractError, match=r"^folder/\.\./pipe/x: cannot be read: Not a directory"
    ):
        read_embodiment("folder/../pipe/x", folder=tmp_path)


def test_what_is_no_embodiment_is_told_as_any_document_is(tmp_path: Path) -> None:
    """
    Its faults, that it is no JSON, that it is too large.
    """
    file = tmp_path / "robot.json"
    for text, kind in (("{}", DocumentError), ("[", ContractError), ("", ContractError)):
        file.write_text(text)
        with pytest.raises(kind):
            read_embodiment(str(file))
    file.write_text(embodiment_to_json(ALOHA))
    with pytest.raises(LimitExceededError) as error:
        read_embodiment(str(file), limits=DocumentLimits(max_document_bytes=100))
    assert (file.stat().st_size, 100) == (error.value.actual, error.value.allowed)
