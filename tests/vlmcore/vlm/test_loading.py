"""The door to local models: what its arguments may be, and what it opens when."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from vlmcore.errors import ContractError
from vlmcore.vlm.loading import load_predictor


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("dtype", "fp16", "'auto', 'bfloat16', 'float16', 'float32'"),
        ("memory", "4bit", "'managed', 'nf4', 'int8', 'cpu'"),
        ("attention", "sdpa", "'auto', 'flash_attention_2', 'eager'"),
        ("dtype", None, "'auto', 'bfloat16', 'float16', 'float32'"),
    ],
)
def test_a_choice_that_is_none_is_answered_with_those_there_are(field, value, expected) -> None:
    """
    Whoever mistypes an option is shown all of its values.
    """
    with pytest.raises(ContractError) as error:
        load_predictor("embedded", **{field: value})

    assert f"{field}: got {value!r}, expected one of {expected}" == str(error.value)


def test_a_device_that_cannot_be_one_is_refused() -> None:
    """
    The names of devices are listed in the error.
    """
    with pytest.raises(ContractError, match="device: got 'gpu'"):
        load_predictor("embedded", device="gpu")


@pytest.mark.parametrize("model", ["no such model", "./nowhere", Path("nowhere"), __file__])
def test_a_model_that_is_not_there_is_an_error_before_pytorch_is_loaded(model) -> None:
    """
    A typing mistake is answered at once.
    """
    program = (
        "import sys, pathlib; from vlmcore.errors import ModelError\n"
        "from vlmcore.vlm.loading import load_predictor\n"
        f"try: load_predictor(pathlib.Path({str(model)!r}) if {isinstance(model, Path)} "
        f"else {str(model)!r})\n"
        "except ModelError: print(sorted({'torch', 'transformers', 'PIL'} & set(sys.modules)))"
    )
    assert "[]" == printed_by(program)


def test_without_pytorch_the_error_names_the_extra() -> None:
    """
    "pip install vlmcore[local]" is what is missing, and what is said.
    """
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from vlmcore.errors import MissingDependencyError\n"
        "from vlmcore.vlm.loading import load_predictor\n"
        "try: load_predictor('embedded')\n"
        "except MissingDependencyError as error: print(error.package, error.extra)"
    )
    assert "torch local" == printed_by(program)


def printed_by(program: str) -> str:
    """Run *program* in a process of its own, in which nothing is imported yet."""
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("field", "value"),
    [("chat_template", ["{{ x }}"]), ("residency", 5), ("dtype", np.zeros(3)), ("memory", None)],
)
def test_an_argument_of_another_kind_is_refused_before_anything_is_loaded(field, value) -> None:
    """
    By its name, and not by an error from the depths.
    """
    with pytest.raises(ContractError) as refused:
        load_predictor("embedded", **{field: value})

    assert field == refused.value.field
