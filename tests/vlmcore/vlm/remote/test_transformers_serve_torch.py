"""The embedded model behind the real server of transformers, asked over loopback."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from vlmcore.embedded import model_directory, sample_scene_path
from vlmcore.errors import ModelServerRefusedError
from vlmcore.media.formats import ImageFormat
from vlmcore.testing import PREDICTOR_CHECKS, check_predictor
from vlmcore.vlm.generation import GenerationOptions, StopReason
from vlmcore.vlm.loading import load_predictor
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.remote.listing import list_models
from vlmcore.vlm.remote.pictures import PictureRules
from vlmcore.vlm.remote.predictors import OpenAICompatiblePredictor

NEEDED = ("accelerate", "fastapi", "openai", "pydantic", "uvicorn")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(map(importlib.util.find_spec, NEEDED)), reason="nox -s servers installs the server"
    ),
]

MODEL = str(model_directory())
PROMPT = Prompt.of("Describe this image in one sentence.", sample_scene_path())


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("serve") / "log"
    program = "import sys; from transformers.cli.transformers import main; sys.exit(main())"
    place = ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    with log.open("wb") as out:
        server = subprocess.Popen(
            [sys.executable, "-c", program, "serve", MODEL, *place],
            stdout=out,
            stderr=out,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        )
    try:
        wait_for(port, server, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(20)
        server.kill()
        server.wait()


def wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    ends_at_s = time.monotonic() + 300
    while time.monotonic() < ends_at_s:
        assert server.poll() is None, log.read_text()
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.5)
    raise AssertionError(log.read_text())


def asking(url: str, model: str = MODEL) -> OpenAICompatiblePredictor:
    pictures = PictureRules(format=ImageFormat.PNG)
    return OpenAICompatiblePredictor(url, model=model, pictures=pictures, timeout_s=120)


def test_the_server_answers_what_the_model_answers_here(url: str) -> None:
    """
    The same words and counts, since PNG loses nothing.
    """
    with load_predictor("embedded") as here, asking(url) as there:
        expected, answer = here.generate(PROMPT), there.generate(PROMPT)
    assert (expected.text, expected.stop_reason) == (answer.text, answer.stop_reason)
    assert (expected.prompt_tokens, expected.new_tokens) == (
        answer.prompt_tokens,
        answer.new_tokens,
    )


def test_it_keeps_the_contract_of_predictors(url: str) -> None:
    """
    Stop texts included, which that server fails at.
    """
    assert len(PREDICTOR_CHECKS) == len(check_predictor(lambda: asking(url), PROMPT))


def test_an_answer_that_is_cut_says_so(url: str) -> None:
    """
    With the reason of the server.
    """
    with asking(url) as predictor:
        answer = predictor.generate(PROMPT, GenerationOptions(max_new_tokens=4))
    assert (StopReason.LENGTH, 4) == (answer.stop_reason, answer.new_tokens)


def test_another_model_is_refused_in_the_words_of_the_server(url: str) -> None:
    """
    It serves one.
    """
    assert (MODEL,) == list_models(url)
    with asking(url, model="nope") as predictor, pytest.raises(ModelServerRefusedError, match="n"):
        predictor.generate(PROMPT)
