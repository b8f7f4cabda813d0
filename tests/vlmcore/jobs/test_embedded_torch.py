"""Captioning jobs with the real model of the package: the answers of a job are the model's own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from caption_cases import caption, captions
from vlmcore import load_image, load_predictor
from vlmcore.embedded import sample_scene_path
from vlmcore.jobs import Result
from vlmcore.jobs.prompts import CaptionPrompt
from vlmcore.jobs.sinks.settings import Sidecars, Table, TableKind
from vlmcore.vlm.generation import GenerationOptions
from vlmcore.vlm.outputs import JsonOutput
from vlmcore.vlm.predictor import Predictor
from vlmcore.vlm.prompt import Prompt

pytest.importorskip("torch")

ASKED = "Describe this image in one sentence."
SCHEMA = {
    "type": "object",
    "properties": {"red": {"type": "boolean"}},
    "required": ["red"],
    "additionalProperties": False,
}
SHORT = GenerationOptions(max_new_tokens=24)


@pytest.fixture(scope="module")
def predictor() -> Iterator[Predictor]:
    with load_predictor("embedded", reuse=False) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of three drawn scenes."""
    for path in sorted(sample_scene_path().parent.glob("scene-*.png"))[:3]:
        shutil.copy(path, tmp_path)
    return tmp_path


def test_captions_in_batches_are_those_that_the_model_gives_to_each_image(
    folder: Path, predictor: Predictor
) -> None:
    report = caption(
        folder, predictor, prompts=CaptionPrompt(text=ASKED, options=SHORT), batch_size=3
    )
    assert 3 == report.counts[Result.CAPTIONED]
    for name, text in captions(folder).items():
        image = load_image(folder / f"{name}.png")
        alone = predictor.generate(Prompt(text=ASKED, images=(image,)), SHORT)
        assert f"{alone.text.strip()}\n" == text


def test_captions_that_fit_a_schema_are_values_in_the_table(
    folder: Path, predictor: Predictor
) -> None:
    """
    And the text in the file beside the image is the JSON that the model wrote.
    """
    pytest.importorskip("llguidance")
    table = folder / "captions.jsonl"
    options = GenerationOptions(max_new_tokens=24, output=JsonOutput(schema=SCHEMA))
    report = caption(
        folder,
        predictor,
        prompts=CaptionPrompt(text="Is anything red?", options=options),
        tables=(Table(path=table, kind=TableKind.JSONL),),
        sidecars=Sidecars(),
    )
    assert (3, 0) == (report.counts[Result.CAPTIONED], report.failed)
    rows = [json.loads(line) for line in table.read_text(encoding="utf-8").splitlines()]
    written = captions(folder)
    for row in rows:
        (value,) = [each for each in row.values() if isinstance(each, dict)]
        assert {"red"} == value.keys()
        assert isinstance(value["red"], bool)
        assert value == json.loads(written[Path(row["key"]).stem])
