"""Which models a server has, and models that are named with their server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from model_server_cases import DONE, Script, delta, model, refuses, says, serving, streams
from vlmcore.cli import main
from vlmcore.embedded import sample_scene_path
from vlmcore.errors import (
    ContractError,
    ModelAccessError,
    ModelServerError,
    ModelServerKeyError,
    ModelServerProtocolError,
)
from vlmcore.vlm.loading import load_predictor
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.remote.listing import list_models
from vlmcore.vlm.remote.pictures import PictureRules
from vlmcore.vlm.remote.predictors import OpenAICompatiblePredictor


def listing(*names: Any) -> Script:
    data = [{"id": name, "object": "model"} for name in names]
    return says(json.dumps({"object": "list", "data": data}).encode())


def test_models_are_listed_in_the_order_of_the_server() -> None:
    """
    Asked at /v1/models, with GET.
    """
    with serving(listing("b", "a")) as server:
        assert ("b", "a") == list_models(server.url)
    assert ("GET", "/v1/models") == (server.asked[0].method, server.asked[0].target)


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (refuses(401), ModelServerKeyError),
        (refuses(500), ModelServerError),
        (says(b"<html>"), ModelServerProtocolError),
        (says(b"3"), ModelServerProtocolError),
        (says(b"{}"), ModelServerProtocolError),
        (lambda _: [b"HTTP/1.1 200 OK\r\n\r\n{"], ModelServerError),
    ],
)
def test_a_server_that_does_not_say_is_an_error(
    script: Script, error: type[ModelServerError]
) -> None:
    """
    In the words of its own.
    """
    with serving(script) as server, pytest.raises(error):
        list_models(server.url, timeout_s=1.0)


def test_a_model_is_loaded_by_its_address() -> None:
    """
    With the model behind a hash, and through the same door as others.
    """
    with serving(model) as server, load_predictor(f"{server.url}#org/tiny") as predictor:
        assert "You asked: Hello?" == predictor.generate(Prompt(text="Hello?")).text
    assert "org/tiny" == server.asked[0].document["model"]


def test_the_only_model_of_a_server_needs_no_name() -> None:
    """
    Where there are several, they are named in the error.
    """
    with serving(listing("tiny")) as server, load_predictor(server.url) as predictor:
        assert "tiny" == predictor.info.model
    with (
        serving(listing("a", "b")) as server,
        pytest.raises(ModelAccessError, match=r"it has 2 models, name one as .*#model: a, b"),
    ):
        load_predictor(server.url)
    with serving(listing()) as server, pytest.raises(ModelAccessError, match="no model"):
        load_predictor(server.url)


def test_a_model_of_a_provider_is_loaded_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Colons in the name of the model are its own.
    """
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or-123456")
    with load_predictor("openrouter:qwen/qwen3-vl:free") as predictor:
        assert "qwen/qwen3-vl:free" == predictor.info.model
        assert "https://openrouter.ai:443/api/v1" == predictor.info.source


@pytest.mark.parametrize(
    ("field", "value"),
    [("device", "cpu"), ("dtype", "float16"), ("revision", "main"), ("chat_template", "{{x}}")],
)
def test_where_a_model_is_placed_is_not_for_the_caller_of_a_server(field: str, value: str) -> None:
    """
    It would be left out in silence.
    """
    with pytest.raises(ContractError, match=f"^{field}: "):
        load_predictor("http://localhost:9#m", **{field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("form", [(), ("--json",), ("--verbose",)])
def test_the_command_describes_with_a_model_behind_a_server(
    form: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Also where the server tells no counts of tokens.
    """
    script = streams(delta("A red square."), delta(reason="stop"), DONE)
    with serving(script) as server:
        words = ["describe", str(sample_scene_path()), "--model", f"{server.url}#tiny", *form]
        assert 0 == main(words)
    told = capsys.readouterr()
    assert "A red square." in told.out
    assert f"tiny: on a server, http://localhost:{server.port}/v1" in told.err
    assert "None" not in told.err


def test_an_answer_that_was_withheld_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    """
    It is said why.
    """
    script = streams(delta("A"), delta(reason="content_filter"), DONE)
    with serving(script) as server:
        assert 0 != main(["describe", str(sample_scene_path()), "--model", f"{server.url}#tiny"])
    assert "withheld" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("http://models.example/v1#m", "expected https"),
        ("http://user:hunter2@localhost:9/v1#m", "expected none in an address"),
        ("http://localhost:9/v1?key=hunter2#m", "got a query"),
        ("http://127.1:9/v1#m", "127.1"),
        ("openai:gpt", "OPENAI_API_KEY"),
        ("opneai:gpt", "openai:name"),
        ("openai:", "openai:name"),
        ("localhost:8000", "http://host:8000#name"),
    ],
)
def test_a_wrong_name_of_a_model_is_one_line_in_the_shell(
    model: str, told: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    It says what was expected, and shows no password that was typed into an address.
    """
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert 0 != main(["describe", str(sample_scene_path()), "--model", model])
    shown = capsys.readouterr().err
    assert told in shown.splitlines()[-1]
    assert "hunter2" not in shown


def test_a_picture_that_cannot_be_sent_is_told_and_the_next_one_is_tried(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """
    It is one image of many.
    """

    image, small = str(sample_scene_path()), PictureRules(max_picture_bytes=10)
    predictor = OpenAICompatiblePredictor("http://localhost:9", model="m", pictures=small)
    words = ["describe", image, image, "--model", "http://localhost:9#m", "--json"]
    assert 0 != main(words, load=lambda *_, **__: predictor)
    told = capsys.readouterr()
    assert 2 == len(told.out.splitlines())
    assert "2 of 2 images could not be described" in told.err
