"""Models of a hub: fetched, refused, out of reach; against a real server on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripted_hub import COMMIT, Hub, Refusal, Repository, serving

pytestmark = pytest.mark.slow

TOKEN = "hf_TheTokenThatNobodyMayEverSee"

# Loads each model that it is given, and says what came of it, with everything an error drags along.
PROGRAM = """
import json, sys, time, traceback
from vlmcore.errors import VlmcoreError
from vlmcore.vlm.loading import load_predictor

def everything(error):
    while error is not None:
        yield from (str(error), repr(error), repr(error.args))
        error = error.__cause__ or error.__context__

for case in json.loads(sys.argv[1]):
    started = time.monotonic()
    try:
        with load_predictor(**case) as predictor:
            answer = {"source": predictor.info.source}
    except VlmcoreError as error:
        answer = {
            "error": type(error).__name__,
            "text": str(error),
            "all": [traceback.format_exc(), *everything(error)],
        }
    print("ANSWER", json.dumps({**answer, "took_s": time.monotonic() - started}))
"""


def ask(cases: list[dict[str, str]], home: Path, **environment: str) -> list[dict[str, object]]:
    """Load models in a process of its own: the hub's settings are read when it is imported."""
    source = str(Path(__file__).parents[4] / "src")
    kept = {k: v for k, v in os.environ.items() if not k.upper().endswith("_PROXY")}
    kept = {k: v for k, v in kept.items() if not k.startswith(("HF_", "HUGGING"))}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, json.dumps(cases)],
        env={**kept, "PYTHONPATH": source, "HF_HOME": str(home), "HF_TOKEN": TOKEN, **environment},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    assert TOKEN not in done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert all(line.startswith("ANSWER ") for line in lines), "standard output is the caller's"
    return [json.loads(line.removeprefix("ANSWER ")) for line in lines]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def hub(tiny_model):
    fine = contents(tiny_model("qwen3_vl"))
    bare = contents(tiny_model("no_chat_template"))
    text = contents(tiny_model("text_only"))
    weights = "model.safetensors"
    repositories = {
        "org/fine": Repository({**fine, "README.md": b"#", "onnx/config.json": b"{}"}),
        "org/gated": Repository(fine, refused_files={"": Refusal(403, "GatedRepo")}),
        "org/gated-weights": Repository(fine, refused_files={weights: Refusal(403, "GatedRepo")}),
        "org/token": Repository(refused=Refusal(401)),
        "org/down": Repository(refused=Refusal(503)),
        "org/odd": Repository(refused=Refusal(418)),
        "org/diffusers": Repository({"model_index.json": b"{}", "config.json": b"{}"}),
        "org/pickled": Repository({"config.json": b"{}", "pytorch_model.bin": b"x"}),
        "org/empty": Repository({"README.md": b"#"}),
        "org/bare": Repository(bare),
        "org/text": Repository(text),
        "org/cut": Repository({**fine, weights: fine[weights][:-1]}),
        "google/gemma-3-4b-it": Repository(fine, refused_files={"": Refusal(401, "GatedRepo")}),
    }
    with serving(Hub(repositories)) as served:
        yield served


@pytest.fixture(scope="module")
def answers(hub, tmp_path_factory):
    """What came of loading each model; one process for all, since importing PyTorch is slow."""
    cases = [{"model": name} for name in hub.repositories if name != "google/gemma-3-4b-it"]
    cases += [
        {"model": "gemma3-4b"},
        {"model": "org/missing"},
        {"model": "org/fine", "revision": "nope"},
        {"model": "org/fine", "revision": COMMIT},
    ]
    home = tmp_path_factory.mktemp("home")
    answers = ask(cases, home, HF_ENDPOINT=hub.url)
    named = {
        case["model"] + (f"@{case['revision']}" if "revision" in case else ""): answer
        for case, answer in zip(cases, answers, strict=True)
    }
    return {**named, "home": home}


def test_a_model_is_fetched_without_what_is_not_needed(hub, answers) -> None:
    """
    The files of the model are fetched once, others of its repository not at all.
    """
    assert "org/fine" == answers["org/fine"]["source"]
    assert "org/fine" == answers[f"org/fine@{COMMIT}"]["source"]
    fetched = [line for line in hub.asked if line.startswith("GET /org/fine/resolve")]
    assert len(fetched) == len(set(fetched))
    assert any(line.endswith("/model.safetensors") for line in fetched)
    assert not any("README" in line or "onnx" in line for line in fetched)


REFUSED = {
    "org/gated": "ModelAccessError: org/gated: is gated: accept its licence at {url}/org/gated, "
    "and set HF_TOKEN to a token of the account that did",
    "gemma3-4b": "ModelAccessError: gemma3-4b: is gated: accept its licence at "
    "{url}/google/gemma-3-4b-it, and set HF_TOKEN to a token of the account that did",
    "org/gated-weights": "ModelAccessError: org/gated-weights: is gated: accept",
    "org/missing": "ModelAccessError: org/missing: {url} has no org/missing; if it is private, "
    "set HF_TOKEN to a token that may read it",
    "org/fine@nope": "ModelAccessError: org/fine: {url} has no revision 'nope' of org/fine",
    "org/token": "ModelAccessError: org/token: the hub at {url} answered with HTTP status 401; "
    "is the token in HF_TOKEN valid?",
    "org/odd": "ModelAccessError: org/odd: the hub at {url} answered with HTTP status 418",
    "org/down": "ModelAccessError: org/down: is not in the cache ({home}/hub), and the hub at "
    "{url} cannot be reached",
    "org/diffusers": "UnsupportedModelError: org/diffusers: is a diffusers pipeline",
    "org/pickled": "UnsupportedModelError: org/pickled: has pickled weights",
    "org/empty": "ModelAccessError: org/empty: is not the folder of a model",
    "org/bare": "UnsupportedModelError: org/bare: has no chat template",
    "org/text": "UnsupportedModelError: org/text: is no model that takes images",
    "org/cut": "ModelError: org/cut: the weight file model.safetensors is damaged",
}


@pytest.mark.parametrize("model", REFUSED)
def test_what_a_hub_refuses_is_said_in_one_sentence(hub, answers, model) -> None:
    """
    Each trouble has its own words, fails fast, and shows the token nowhere.
    """
    answer = answers[model]

    expected = REFUSED[model].format(url=hub.url, home=answers["home"])
    assert f"{answer['error']}: {answer['text']}".replace("\\", "/").startswith(expected)
    assert "\n" not in answer["text"]
    assert TOKEN not in json.dumps(answer)
    assert answer["took_s"] < 30


def test_the_weights_of_a_model_that_cannot_be_run_are_not_fetched(hub, answers) -> None:
    """
    Gigabytes are fetched only after everything else was found right.
    """
    assert answers
    fetched = [line for line in hub.asked if line.endswith((".safetensors", ".bin"))]
    for name in ("org/bare", "org/text", "org/pickled", "org/diffusers"):
        assert not any(f" /{name}/" in line for line in fetched)


def test_a_model_in_the_cache_needs_no_hub(answers) -> None:
    """
    Without a network, or with one that is forbidden, what was fetched before is loaded.
    """
    cases = [{"model": "org/fine"}, {"model": "org/other"}, {"model": "org/gated-weights"}]

    forbidden = ask(cases, answers["home"], HF_HUB_OFFLINE="1")
    away = ask(cases, answers["home"], HF_ENDPOINT="http://127.0.0.1:9")

    for found in (forbidden, away):
        assert "org/fine" == found[0]["source"]
        assert "org/other: is not in the cache" in found[1]["text"]
        assert "ModelAccessError" == found[2]["error"]
        assert found[1]["took_s"] < 30, "a hub that is away is not asked again and again"
    assert "HF_HUB_OFFLINE forbids asking the hub" in forbidden[1]["text"]
    assert "the hub at http://127.0.0.1:9 cannot be reached" in away[1]["text"]
