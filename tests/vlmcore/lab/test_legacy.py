"""Tests of `vlmcore.lab.legacy`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ArtifactError, DocumentError
from vlmcore.lab.legacy import LegacyRun, legacy_from_document, read_legacy
from vlmcore.lab.verifying import EditKind, verify_artifact


def sample(**fields: Any) -> dict[str, Any]:
    """Make a request as the older tool wrote it."""
    known = {
        "output": "A woman gives a high-five.",
        "latency_ms": 306.0,
        "ttft_ms": 3.6,
        "completion_tokens": 31,
        "output_tokens_per_second": 202.6,
        "usage": {"prompt_tokens": 141, "completion_tokens": 31, "prompt_tokens_details": None},
        "sample": 0,
        "case_id": "beach",
        "task": "caption",
        "media_sha256": "a" * 64,
        "quality": 1.0,
    }
    return known | fields


def document(**fields: Any) -> dict[str, Any]:
    """Make a run as the older tool wrote it."""
    known = {
        "schema": "comfyui-vlm/benchmark-run",
        "version": 1,
        "created_at": "2026-03-01T10:00:00.123456+00:00",
        "label": "05e",
        "backend": "sglang",
        "suite": "beach",
        "model": "Qwen/Qwen3-VL-2B-Instruct",
        "git_commit": "0123456789",
        "git_dirty": True,
        "environment": {
            "platform": "Linux-6.1-x86_64",
            "python": "3.12.3",
            "server_base_url": "http://user:secret@host:30000/v1?key=abc",
        },
        "settings": {
            "warmups": 3,
            "runs": 30,
            "max_tokens": 96,
            "temperature": 0.0,
            "quality_tolerance": 0.98,
        },
        "summary": {"requests": 1, "output_tokens_per_second_mean": 202.6},
        "quality_gate": {"threshold": 0.98, "passed": True},
        "samples": [sample()],
    }
    return known | fields


def read(**fields: Any) -> LegacyRun:
    """Read a run with some of its keys changed."""
    return legacy_from_document(document(**fields))


def test_what_an_artifact_of_version_1_holds_is_read() -> None:
    """
    As it was recorded, by what it is: the clock of the latency stopped at the end of the stream.
    """
    run = read()
    assert ("05e", "sglang", 96, 3) == (run.label, run.backend, run.max_tokens, run.warm_ups)
    (one,) = run.samples
    assert (3.6, 306.0, 31, 141) == (
        one.first_text_ms,
        one.closed_ms,
        one.generated_tokens,
        one.prompt_tokens,
    )


@pytest.mark.parametrize(
    "place",
    [
        "prompt",
        "suite_sha256",
        "targets.checkpoint.revision",
        "targets.server.version",
        "host.accelerators",
        "plan.generation.seed",
        "samples.finish_reason",
        "samples.text_sha256",
        "samples.request_ns",
        "samples.chunks",
        "samples.last_token_ns",
        "samples.cached_tokens",
        "warm_ups",
        "digests",
    ],
)
def test_what_it_lacks_is_said(place: str) -> None:
    """
    Each of these is needed to say that two runs are alike: without them there is no badge.
    """
    assert read().unknown[place]


def test_a_time_to_the_first_token_where_there_was_none_is_not_taken_over() -> None:
    """
    The older tool wrote the latency there.
    """
    run = read(samples=[sample(output="", ttft_ms=9.08, latency_ms=9.08)])
    assert run.samples[0].first_text_ms is None
    assert "is not in 1 of 1 samples" == run.unknown["samples.first_text_ms"]


def test_cache_hits_that_were_not_told_are_unknown_and_not_none() -> None:
    """
    Every stored sample has null there: whether a prefix was kept cannot be said.
    """
    told = sample(usage={"prompt_tokens_details": {"cached_tokens": 128}})
    assert (None, 128) == tuple(s.cached_tokens for s in read(samples=[sample(), told]).samples)


def test_users_passwords_and_queries_of_the_server_are_not_read() -> None:
    """
    The older tool wrote the address as it was given.
    """
    run = read()
    assert "http://host:30000/v1" == run.address
    assert "secret" not in repr(run)


def test_no_changes_are_known_where_there_was_no_commit() -> None:
    """
    Without git the older tool wrote "not dirty".
    """
    run = read(git_commit=None, git_dirty=False)
    assert (None, None) == (run.commit, run.has_changes)


def test_a_file_is_read_with_figures_that_are_no_numbers(tmp_path: Path) -> None:
    """
    NaN in a summary, which nobody reads.
    """
    path = tmp_path / "20260301T100000Z-05e.json"
    path.write_text(json.dumps(document(summary={"p50": float("nan")}), indent=2) + "\n")
    assert 1 == len(read_legacy(path).samples)
    assert EditKind.NOT_JSON in [edit.kind for edit in verify_artifact(path).edits]


def test_it_is_never_verified(tmp_path: Path) -> None:
    """
    There is nothing in it to hold it against.
    """
    path = tmp_path / "20260301T100000Z-05e.json"
    path.write_text(json.dumps(document()))
    assert {EditKind.RENAMED, EditKind.NOT_SEALED} == {e.kind for e in verify_artifact(path).edits}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda d: d.update(version=2), "$.version"),
        (lambda d: d.update(schema="comfyui-vlm/optimization-matrix"), "$.schema"),
        (lambda d: d.pop("samples"), "$.samples"),
        (lambda d: d["samples"][0].update(latency_ms=float("nan")), "$.samples[0].latency_ms"),
        (lambda d: d["samples"][0].update(quality=True), "$.samples[0].quality"),
        (lambda d: d["samples"][0].update(usage=None), "$.samples[0].usage"),
        (lambda d: d["settings"].update(warmups=-1), "$.settings.warmups"),
        (lambda d: d.update(more=1), "$.more"),
    ],
)
def test_a_broken_one_is_refused_with_the_place(
    change: Callable[[dict[str, Any]], object], fault: str
) -> None:
    """
    All faults at once.
    """
    broken = document()
    change(broken)
    with pytest.raises(DocumentError) as caught:
        legacy_from_document(broken)
    assert fault in [path for path, _ in caught.value.faults]


@given(st.binary(max_size=200))
def test_any_bytes_are_a_run_or_our_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    """
    An old file may be anything.
    """
    path = tmp_path_factory.mktemp("legacy") / "x.json"
    path.write_bytes(data)
    with pytest.raises(ArtifactError):
        read_legacy(path)
