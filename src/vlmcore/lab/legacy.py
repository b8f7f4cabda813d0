"""
Artifacts of version 1, ``comfyui-vlm/benchmark-run``, as an older tool wrote them.

They hold rounded figures and no events, so nothing can be made anew from them, and no digests, so
nobody can say that they were not edited. What they lack is ``None``, and `LegacyRun.unknown` says
why; they never get a badge. Two of their figures were worked out wrongly and are not taken over:
tokens a second, and a time to the first token where there was none.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import attrs

from vlmcore.contracts.faults import Faults
from vlmcore.contracts.json_text import read_json
from vlmcore.contracts.nullable import Nullable
from vlmcore.contracts.schemas import DocumentKind
from vlmcore.contracts.shapes import Field, Flag, JsonObject, ListOf, Number, Record, Text, Whole
from vlmcore.errors import ArtifactError, ContractError
from vlmcore.lab.artifact_files import read_bytes, shown_path
from vlmcore.lab.redacting import address_without_secrets
from vlmcore.limits import ArtifactLimits, SampleLimits

__all__ = ["LEGACY", "LegacyRun", "LegacySample", "legacy_from_document", "read_legacy"]

_LIMITS = ArtifactLimits()
_SAMPLES = SampleLimits()
_LINE = Text(longest=_LIMITS.max_name_characters)
_COUNT = Whole(smallest=0, largest=_SAMPLES.max_requests)
_TOKENS = Nullable(Whole(smallest=0, largest=_SAMPLES.max_tokens))

_SAMPLE = Record(
    fields={
        "output": Field(Text(longest=_SAMPLES.max_text_characters, blank=True), "The answer."),
        "latency_ms": Field(Number(), "Until the stream was closed, in milliseconds."),
        "ttft_ms": Field(Number(), "Until the first text; the latency if there was none."),
        "completion_tokens": Field(_TOKENS, "Generated tokens."),
        "output_tokens_per_second": Field(
            Nullable(Number()), "All tokens by the time after the first: one too many."
        ),
        "usage": Field(JsonObject(), "What the server told."),
        "sample": Field(_COUNT, "Its number."),
        "case_id": Field(_LINE, "The case."),
        "task": Field(_LINE, "What kind of task it is."),
        "media_sha256": Field(Text(longest=64), "Of the file as it was stored."),
        "quality": Field(Number(largest=1.0), "From 0 to 1."),
    }
)

LEGACY = DocumentKind(
    name="benchmark-run",
    title="A run as an older tool wrote it; it is read, and not written any more.",
    keys={
        "created_at": Field(_LINE, "When it ended."),
        "label": Field(_LINE, "A name for people."),
        "backend": Field(_LINE, "The name of the server, as somebody typed it."),
        "suite": Field(_LINE, "The name of the suite."),
        "model": Field(_LINE, "What was asked for."),
        "git_commit": Field(Nullable(_LINE), "The commit of the working folder."),
        "git_dirty": Field(Flag(), "Whether there was more in it; false too if there was no git."),
        "environment": Field(
            Record(
                fields={
                    "platform": Field(_LINE, "The system of the client."),
                    "python": Field(_LINE, "Its version there."),
                    "server_base_url": Field(_LINE, "The address of the server."),
                }
            ),
            "Where it ran.",
        ),
        "settings": Field(
            Record(
                fields={
                    "warmups": Field(_COUNT, "Requests before the samples, of all cases together."),
                    "runs": Field(_COUNT, "Samples, of all cases together."),
                    "max_tokens": Field(_TOKENS, "The most that was to be generated."),
                    "temperature": Field(Nullable(Number()), "Of the sampling."),
                    "quality_tolerance": Field(Number(), "The lowest mean quality that passes."),
                }
            ),
            "What it was to do.",
        ),
        "summary": Field(JsonObject(), "Figures that were worked out; they are not read."),
        "quality_gate": Field(
            Record(
                fields={
                    "threshold": Field(Number(), "The lowest mean quality that passes."),
                    "passed": Field(Flag(), "Whether it was reached."),
                }
            ),
            "The gate.",
        ),
        "samples": Field(
            ListOf(item=_SAMPLE, fewest=0, most=_SAMPLES.max_requests), "The requests."
        ),
    },
)

#: What is not in such an artifact, and why.
_LACKS = {
    "prompt": "version 1 does not hold it",
    "suite_sha256": "version 1 holds the name of the suite only",
    "inputs.pixels_sha256": "version 1 holds the digest of the stored file only",
    "inputs.size": "version 1 does not hold what was sent",
    "targets.checkpoint.revision": "version 1 does not hold it",
    "targets.checkpoint.files": "version 1 does not hold them",
    "targets.precision": "version 1 does not hold it",
    "targets.options": "version 1 does not hold the flags of the server",
    "targets.server.version": "version 1 does not hold it",
    "targets.server.models": "version 1 does not hold them",
    "host.processor": "version 1 does not hold it",
    "host.accelerators": "version 1 does not hold them",
    "packages": "version 1 does not hold them",
    "plan.generation.seed": "version 1 does not hold it",
    "plan.cache": "version 1 does not declare it; servers keep prefixes unless told not to",
    "warm_ups": "version 1 counts them and keeps none",
    "samples.finish_reason": "version 1 does not hold it: an answer may have been cut",
    "samples.text_sha256": "version 1 does not hold it: an answer may have been edited",
    "samples.request_ns": "version 1 does not say when a request was made",
    "samples.chunks": "version 1 holds the time of the first text only",
    "samples.last_token_ns": "version 1 stops its clock when the stream is closed",
    "samples.failure": "version 1 keeps no request that failed",
    "samples.peak_memory_bytes": "version 1 does not hold it",
    "digests": "version 1 has none: an edit cannot be found",
}


@attrs.frozen(kw_only=True)
class LegacySample:
    """
    One request as version 1 holds it.

    Attributes:
        case: The case.
        text: The whole answer.
        first_text_ms: From the request to its first characters, headers, encoding and resizing not
            all included; ``None`` if there were none.
        closed_ms: From the request to the end of the stream, which may be long after the last
            token; no E2E.
        generated_tokens: As the server told.
        prompt_tokens: As the server told.
        cached_tokens: As the server told.
        file_sha256: Of the image file as it was stored.
        quality: From 0 to 1, by scorers that take parts of words for words.
    """

    case: str
    text: str
    first_text_ms: float | None
    closed_ms: float
    generated_tokens: int | None
    prompt_tokens: int | None
    cached_tokens: int | None
    file_sha256: str
    quality: float


@attrs.frozen(kw_only=True)
class LegacyRun:
    """
    A run of version 1: what it holds, and what it lacks.

    Attributes:
        label: A name for people.
        created_at: When it ended.
        suite: The name of the suite.
        model: What was asked for.
        backend: The name of the server, as somebody typed it.
        address: The address of the server, without secrets.
        system: The system of the client.
        python: Its version there.
        commit: The commit of the folder that the tool was started in.
        has_changes: Whether there was more in it; ``None`` if there was no commit.
        max_tokens: The most that was to be generated.
        temperature: Of the sampling.
        warm_ups: How many there were; none is kept.
        samples: The requests that did not fail.
        unknown: Each place of a run that it does not hold, and why.
    """

    label: str
    created_at: str
    suite: str
    model: str
    backend: str
    address: str
    system: str
    python: str
    commit: str | None
    has_changes: bool | None
    max_tokens: int | None
    temperature: float | None
    warm_ups: int
    samples: tuple[LegacySample, ...] = attrs.field(repr=False)
    unknown: Mapping[str, str] = attrs.field(hash=False, repr=False)


def read_legacy(path: str | os.PathLike[str], *, limits: ArtifactLimits | None = None) -> LegacyRun:
    """
    Read an artifact of version 1.

    Raises:
        ArtifactError: If there is no such file, it is too large, or no such artifact.
    """
    data = read_bytes(path, limits=limits)
    try:
        # Figures that the older tool made of nothing are NaN, which is no JSON; nobody reads them.
        value = read_json(data, limits=(limits or _LIMITS).of_a_document, allow_nan=True)
        return legacy_from_document(value)
    except ContractError as error:
        raise ArtifactError(shown_path(path), str(error)) from error


def legacy_from_document(value: Any) -> LegacyRun:
    """
    Read an artifact of version 1 from plain values.

    Raises:
        DocumentError: If there are faults; all of them are listed.
    """
    faults = Faults(LEGACY.name)
    data = LEGACY.read(value, faults)
    faults.raise_any()
    settings, environment = data["settings"], data["environment"]
    samples = tuple(_sample(each) for each in data["samples"])
    return LegacyRun(
        label=data["label"],
        created_at=data["created_at"],
        suite=data["suite"],
        model=data["model"],
        backend=data["backend"],
        address=address_without_secrets(environment["server_base_url"]),
        system=environment["platform"],
        python=environment["python"],
        commit=data["git_commit"],
        has_changes=None if data["git_commit"] is None else data["git_dirty"],
        max_tokens=settings["max_tokens"],
        temperature=settings["temperature"],
        warm_ups=settings["warmups"],
        samples=samples,
        unknown=_LACKS | dict(_gaps(samples)),
    )


def _sample(said: Mapping[str, Any]) -> LegacySample:
    usage = said["usage"]
    details = usage.get("prompt_tokens_details")
    return LegacySample(
        case=said["case_id"],
        text=said["output"],
        first_text_ms=said["ttft_ms"] if said["output"] else None,
        closed_ms=said["latency_ms"],
        generated_tokens=said["completion_tokens"],
        prompt_tokens=_count(usage.get("prompt_tokens")),
        cached_tokens=_count(details.get("cached_tokens")) if isinstance(details, dict) else None,
        file_sha256=said["media_sha256"],
        quality=said["quality"],
    )


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= _SAMPLES.max_tokens else None


def _gaps(samples: tuple[LegacySample, ...]) -> list[tuple[str, str]]:
    found = []
    names = ("first_text_ms", "generated_tokens", "prompt_tokens", "cached_tokens")
    for name in names:
        count = sum(getattr(sample, name) is None for sample in samples)
        if count:
            found.append((f"samples.{name}", f"is not in {count} of {len(samples)} samples"))
    return found
