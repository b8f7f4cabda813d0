"""Targets by their words, opened and looked at."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from model_server_cases import model, refuses, says, serving
from vlmcore.errors import ContractError, EndpointError
from vlmcore.lab.opening import OpenedTarget, TargetChoice, open_target
from vlmcore.lab.targets import TargetKind
from vlmcore.testing import EchoPredictor
from vlmcore.vlm.generation import GenerationCache, GenerationOptions, MatmulPrecision

SHORT = GenerationOptions(max_new_tokens=8)


def opened(words: str, **more: Any) -> OpenedTarget:
    choice = TargetChoice.of(words, name="mine")
    usual: dict[str, Any] = {"generation": SHORT, "deadline_s": 5, "clock_ns": time.monotonic_ns}
    return open_target(choice, **usual | more)


def test_options_of_loading_and_of_answering_go_where_they_belong() -> None:
    """
    What is loaded otherwise is loaded so; what is answered otherwise is asked so.
    """
    asked: list[Any] = []

    def load(name: str, **how: Any) -> EchoPredictor:
        asked.append((name, how))
        return EchoPredictor()

    words = "embedded,dtype=float32,decoding=compiled,cache=static,matmul_precision=high"
    with opened(f"{words},prompt_lookup=true", load=load, keeps=True) as target:
        assert [("embedded", {"reuse": True, "dtype": "float32", "decoding": "compiled"})] == asked
        generation = target.generation
        assert GenerationCache.STATIC is generation.cache
        assert MatmulPrecision.HIGH is generation.matmul_precision
        assert generation.prompt_lookup
        assert 8 == generation.max_new_tokens
        assert "static" == target.facts.options["cache"]
        assert "echo" in target.facts.options["as_loaded"]["backend"]


def test_files_of_a_model_are_digested(tmp_path: Path) -> None:
    """
    Those of a hub are not known to be those of the folder that it was loaded from.
    """
    (tmp_path / "config.json").write_text("{}")

    class Local(EchoPredictor):
        @property
        def info(self) -> Any:
            import attrs  # noqa: PLC0415

            return attrs.evolve(super().info, source=str(tmp_path))

    with opened(str(tmp_path), load=lambda *_, **__: Local()) as target:
        assert target.facts.checkpoint.files is not None
        (file,) = target.facts.checkpoint.files
        assert ("config.json", 2) == (file.name, file.size_bytes)
        assert {} == dict(target.unknown)
    with opened("org/name", load=lambda *_, **__: EchoPredictor()) as target:
        assert {"checkpoint.files"} == {*target.unknown}


def test_a_server_is_asked_what_it_is() -> None:
    """
    Version, models and metrics, as far as it tells; the rest is unknown, and why.
    """
    told = [
        says(b'{"version": "0.5.10"}'),
        says(b'{"data": [{"id": "m"}, {"id": "other"}]}'),
        says(b"requests_total 4\n", kind="text/plain"),
    ]
    with (
        serving(*told, model) as server,
        opened(f"{server.url}#m,picture_format=png,picture_quality=80") as target,
    ):
        paths = [asked.target for asked in server.asked]
        facts = target.facts.server

    assert ["/version", "/v1/models", "/metrics"] == paths
    assert facts is not None
    assert ("0.5.10", ("m", "other"), "requests_total 4\n") == (
        facts.version,
        facts.models,
        facts.metrics,
    )
    assert TargetKind.SERVER is target.facts.kind
    assert target.rules is not None
    assert ("PNG", 80) == (target.rules.format.name, target.rules.quality)
    assert {"precision", "checkpoint.revision", "checkpoint.files"} == {*target.unknown}


def test_a_server_that_tells_nothing_is_a_target_all_the_same() -> None:
    """
    Not all have these paths.
    """
    with serving(refuses(404)) as server, opened(f"{server.url}#m") as target:
        assert target.facts.server is not None
        assert target.facts.server.version is None
        assert {"server.version", "server.models"} <= {*target.unknown}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("embedded,dtype", r"^target: got 'dtype', expected MODEL,OPTION=VALUE"),
        ("embedded,dtype=a,dtype=b", r"^target: got 'dtype=b'"),
        ("embedded,colour=red", r"^options: got 'colour' of 'embedded', expected one of device"),
        ("http://localhost:1#m,dtype=float32", r"^options: got 'dtype' of .* picture_format"),
        ("embedded,cache=round", r"^cache: got 'round', expected one of dynamic, static"),
        ("embedded,prompt_lookup=yes", r"^prompt_lookup: got 'yes', expected one of true, false"),
        ("http://localhost:1#m,picture_format=webp", r"^picture_format: got 'webp', .* jpeg, png"),
        ("http://localhost:1#m,picture_quality=high", r"^picture_quality: got 'high'"),
        ("http://localhost:1", r"^target: got 'http://localhost:1', expected URL#model"),
        ("http://u:secret@localhost:1", r"^target: got 'http://localhost:1', expected URL#model"),
        (
            "embedded,longest_edge_px=big",
            r"^longest_edge_px: got 'big', expected a number of pixels",
        ),
        ("http://localhost:1#m,longest_edge_px=0", r"^longest_edge_px: got 0"),
        ("anthropic:claude", r"^target: got 'anthropic:claude', expected URL#model or PROVIDER"),
    ],
)
def test_words_that_mean_nothing_are_refused(words: str, told: str) -> None:
    """
    With what is meant, and without what is secret.
    """
    with pytest.raises(ContractError, match=told):
        opened(words, load=lambda *_, **__: EchoPredictor())


def test_another_machine_is_not_dialled_in_the_clear() -> None:
    """
    The rules of addresses hold here too.
    """
    with pytest.raises(EndpointError):
        opened("http://example.com/v1#m")
