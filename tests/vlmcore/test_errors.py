"""Tests of `vlmcore.errors`."""

from __future__ import annotations

import copy
import inspect
import pickle
import re

import pytest

from vlmcore import errors
from vlmcore.errors import (
    AmbiguousResponseError,
    ArtifactError,
    ArtifactTamperedError,
    ContractError,
    CorruptWeightsError,
    DetectionCancelledError,
    DetectionError,
    DocumentError,
    EndpointError,
    EpisodeError,
    GenerationError,
    GraphError,
    GraphFailedError,
    GraphRefusedError,
    GraphServerError,
    GraphStoppedError,
    IncompleteAnswersError,
    InputMismatchError,
    JobError,
    JobJournalError,
    JobRunningError,
    JobSinkError,
    JobSourceError,
    LabError,
    LimitExceededError,
    MediaError,
    MediaLimitError,
    MissingDependencyError,
    ModelAccessError,
    ModelError,
    ModelMemoryError,
    ModelNotServedError,
    ModelServerBusyError,
    ModelServerError,
    ModelServerKeyError,
    ModelServerProtocolError,
    ModelServerRateLimitError,
    ModelServerRefusedError,
    ModelServerTimeoutError,
    ModelServerUnavailableError,
    MusicBalanceError,
    MusicBlockedError,
    MusicBusyError,
    MusicCancelledError,
    MusicDownloadError,
    MusicError,
    MusicIncompleteError,
    MusicKeyError,
    MusicParametersError,
    MusicProtocolError,
    MusicRateLimitError,
    MusicRefusedError,
    MusicTimeoutError,
    MusicUnavailableError,
    PolicyError,
    PolicyProtocolError,
    PolicyRefusedError,
    PolicyStatusError,
    PolicyTimeoutError,
    PolicyUnavailableError,
    StructureError,
    SuiteError,
    UnsafeActionError,
    UnsupportedModelError,
    VlmcoreError,
    WeightChecksumError,
    WeightMismatchError,
    WeightsBudgetError,
    WeightsCancelledError,
    WeightsChangedError,
    WeightsError,
    WeightsLimitError,
)

# One of each, with the text that it shows.
EXAMPLES = [
    (VlmcoreError("anything"), "anything"),
    (ContractError("rate_hz", "got 0, expected more"), "rate_hz: got 0, expected more"),
    (
        AmbiguousResponseError("response", ("'actions'", "'action'"), "send one"),
        "response: got what may be 'actions' or 'action', expected one: send one",
    ),
    (DocumentError("robot", (("$.x", "got 0"),)), "robot: $.x: got 0"),
    (
        DocumentError("robot", (("$.x", "got 0"), ("$.y[3]", "got 1"))),
        "robot: 2 faults\n  $.x: got 0\n  $.y[3]: got 1",
    ),
    (LimitExceededError("max_bytes", 12, 10), "max_bytes: got 12, limit is 10"),
    (GraphError("graph.json", "is empty"), "graph.json: is empty"),
    (GraphServerError("http://h:1", "hung up"), "http://h:1: hung up"),
    (
        GraphRefusedError("http://h:1", "does not take it", {"3": "no such node"}),
        "http://h:1: does not take it\n  node 3: no such node",
    ),
    (GraphFailedError("node 3", "got 0"), "node 3: got 0"),
    (GraphStoppedError("node 3", "was stopped there"), "node 3: was stopped there"),
    (JobError("pictures", "stopped"), "pictures: stopped"),
    (JobSourceError("list.txt", "line 3 is no path"), "list.txt: line 3 is no path"),
    (JobSinkError("out.jsonl", "the disk is full"), "out.jsonl: the disk is full"),
    (JobJournalError("pictures", "the journal is damaged"), "pictures: the journal is damaged"),
    (JobRunningError("pictures", "process 7 is at work"), "pictures: process 7 is at work"),
    (
        EndpointError("http://h:80", "got http, expected https"),
        "http://h:80: got http, expected https",
    ),
    (EpisodeError("run.jsonl", 3, "got text"), "run.jsonl, line 3: got text"),
    (EpisodeError("run.jsonl", None, "does not exist"), "run.jsonl: does not exist"),
    (LabError("run", "was stopped"), "run: was stopped"),
    (ArtifactError("a.json", "does not exist"), "a.json: does not exist"),
    (
        ArtifactTamperedError("a.json", (("$.samples[3]", "is not what was sealed"),)),
        "a.json: $.samples[3]: is not what was sealed",
    ),
    (SuiteError("s.toml", "does not exist"), "s.toml: does not exist"),
    (SuiteError("s.toml", "$.x: got 0", (("$.x", "got 0"),)), "s.toml: $.x: got 0"),
    (
        InputMismatchError("pixels", "448 x 299", "2048 x 1365"),
        "pixels: got 448 x 299, expected that of the baseline, 2048 x 1365",
    ),
    (MediaError("a.png", "not an image"), "a.png: not an image"),
    (
        MediaLimitError("a.png", "max_pixels", 12, 10),
        "a.png: max_pixels: got 12, limit is 10",
    ),
    (
        MissingDependencyError("PIL", "local"),
        "'PIL' is needed here and is not installed: pip install \"vlmcore[local]\"",
    ),
    (ModelError("m", "broken"), "m: broken"),
    (ModelAccessError("m", "gated"), "m: gated"),
    (UnsupportedModelError("m", "text only"), "m: text only"),
    (ModelMemoryError("m", "too large", 12, 10), "m: too large"),
    (ModelMemoryError("m", "too large"), "m: too large"),
    (GenerationError("m", "failed"), "m: failed"),
    (DetectionError("m", "failed"), "m: failed"),
    (DetectionCancelledError("m", "was stopped"), "m: was stopped"),
    (IncompleteAnswersError("m", "1 of 2 failed", ("a", None)), "m: 1 of 2 failed"),
    (ModelServerError("m", "is away"), "m: is away"),
    (ModelServerUnavailableError("m", "nothing listens there"), "m: nothing listens there"),
    (ModelServerTimeoutError("m", "answer", 60.0, "A red"), "m: no answer within 60 s"),
    (ModelServerProtocolError("m", "sent a page"), "m: sent a page"),
    (ModelServerRefusedError("m", "too long", "", 400, "bad"), "m: too long (HTTP 400, bad)"),
    (ModelServerRefusedError("m", "overloaded"), "m: overloaded"),
    (ModelServerKeyError("m", "no key", "", 401), "m: no key (HTTP 401)"),
    (
        ModelServerRateLimitError("m", "slow down", "", 429, "", 2.5),
        "m: slow down (HTTP 429, again after 2.5 s)",
    ),
    (ModelServerBusyError("m", "failed", "", 503), "m: failed (HTTP 503)"),
    (ModelNotServedError("m", "unknown", "", 404), "m: unknown (HTTP 404)"),
    (StructureError("m", "got no JSON", "a dog", "end", (("$", "gone"),)), "m: got no JSON"),
    (MusicError("m", "is away"), "m: is away"),
    (MusicUnavailableError("m", "nothing listens there"), "m: nothing listens there"),
    (MusicTimeoutError("m", "answer", 600.0), "m: no answer within 600 s"),
    (MusicCancelledError("m", "it was ended"), "m: it was ended"),
    (MusicProtocolError("m", "sent text"), "m: sent text"),
    (MusicIncompleteError("m", "it hung up", 1234), "m: it hung up (1,234 bytes came)"),
    (MusicDownloadError("m", "HTTP 503", url="https://cdn.example/a"), "m: HTTP 503"),
    (
        MusicDownloadError("m", "HTTP 503", url="https://cdn.example/a", expires_at_s=1796090400),
        "m: HTTP 503 (its address is good until 2026-12-01 02:00 UTC)",
    ),
    (MusicRefusedError("m", "no", None, 500), "m: no (HTTP 500)"),
    (MusicRateLimitError("m", "slow down", 1002, 200, "t1"), "m: slow down (code 1002, trace t1)"),
    (MusicBusyError("m", "failed", 1000), "m: failed (code 1000)"),
    (MusicKeyError("m", "no", 1004, 401), "m: no (code 1004, HTTP 401)"),
    (MusicBalanceError("m", "no", 1008), "m: no (code 1008)"),
    (MusicBlockedError("m", "no", 1026), "m: no (code 1026)"),
    (MusicParametersError("m", "no"), "m: no"),
    (PolicyError("p", "is away"), "p: is away"),
    (PolicyUnavailableError("p", "refused the connection"), "p: refused the connection"),
    (PolicyTimeoutError("p", "reply", 1.25), "p: no reply within 1.25 s"),
    (PolicyProtocolError("p", "sent text", "theirs"), "p: sent text"),
    (PolicyRefusedError("p", "no camera 'side'"), "p: no camera 'side'"),
    (PolicyStatusError("p", "no camera 'side'", 400), "p: no camera 'side' (HTTP 400)"),
    (UnsafeActionError("2 out of bounds", "violations"), "violations: 2 out of bounds"),
    (
        UnsafeActionError("all kept", "stale", "observed_at_s: got 2 s ago, expected at most 1 s"),
        "stale: observed_at_s: got 2 s ago, expected at most 1 s; all kept",
    ),
    (WeightsError("w", "does not exist"), "w: does not exist"),
    (WeightsError("w\n", "does not exist"), r"w\n: does not exist"),
    (WeightsError("", "is no path"), "'': is no path"),
    (CorruptWeightsError("w", "got no footer"), "w: got no footer"),
    (WeightChecksumError("w", ("a",)), "w: got other bytes than the manifest's in 'a'"),
    (
        WeightChecksumError("w", tuple("abcdefg")),
        "w: got other bytes than the manifest's in 'a', 'b', 'c', 'd', 'e' and 2 more",
    ),
    (
        WeightChecksumError("w", ()),
        "w: got other bytes than the manifest's in bytes outside of tensors",
    ),
    (WeightsChangedError("w", "shrank"), "w: shrank"),
    (WeightsLimitError("w", "max_files", 3, 2), "w: max_files: got 3, limit is 2"),
    (
        WeightMismatchError("w", ("a",), ("b", "c"), (("d", "got float32, expected bool"),)),
        (
            "w: 1 missing: 'a'; 2 not of the model: 'b', 'c'; "
            "1 different: 'd: got float32, expected bool'"
        ),
    ),
    (
        WeightMismatchError("w", tuple("abcdefg")),
        "w: 7 missing: 'a', 'b', 'c', 'd', 'e' and 2 more",
    ),
    (WeightsBudgetError("w", "too large", 12, 10), "w: too large"),
    (WeightsCancelledError("w", 10, 12), "w: cancelled after 10 of 12 bytes"),
]
ALL_ERRORS = [getattr(errors, name) for name in errors.__all__]


def name_of(error: VlmcoreError) -> str:
    return type(error).__name__


def test_there_is_an_example_of_every_error() -> None:
    """
    So that the tests below hold for all of them.
    """
    assert set(ALL_ERRORS) == {type(error) for error, _ in EXAMPLES}


@pytest.mark.parametrize(("error", "text"), EXAMPLES, ids=lambda value: type(value).__name__)
def test_an_error_says_what_is_wrong(error: VlmcoreError, text: str) -> None:
    """
    The text names the field or the thing, what came, and what was expected.
    """
    assert text == str(error)


@pytest.mark.parametrize("error", [error for error, _ in EXAMPLES], ids=name_of)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_error_crosses_a_process_boundary(error: VlmcoreError, protocol: int) -> None:
    """
    Data loaders and job engines pickle what their workers raise.
    """
    other = pickle.loads(pickle.dumps(error, protocol))

    assert type(error) is type(other)
    assert (error.args, str(error), vars(error)) == (other.args, str(other), vars(other))


@pytest.mark.parametrize("error", [error for error, _ in EXAMPLES], ids=name_of)
def test_an_error_can_be_copied(error: VlmcoreError) -> None:
    """
    Copying goes the way of pickling.
    """
    assert (error.args, str(error)) == (copy.copy(error).args, str(copy.deepcopy(error)))


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (ContractError, ValueError),
        (EpisodeError, ValueError),
        (MediaError, ValueError),
        (MissingDependencyError, ImportError),
        (ModelMemoryError, MemoryError),
        (EndpointError, ValueError),
        (PolicyUnavailableError, ConnectionError),
        (PolicyTimeoutError, TimeoutError),
    ],
)
def test_an_error_is_the_builtin_that_people_already_catch(
    error: type[Exception], builtin: type[Exception]
) -> None:
    """
    ``except ValueError`` written before this library was known keeps working.
    """
    assert issubclass(error, builtin)


def test_every_error_stands_in_the_one_tree() -> None:
    """
    ``except VlmcoreError`` catches all that we raise on purpose.
    """
    defined = {value for value in vars(errors).values() if inspect.isclass(value)}
    assert set(ALL_ERRORS) == defined
    assert all(issubclass(error, VlmcoreError) for error in defined)


def test_the_outline_shows_every_error_under_its_parent() -> None:
    """
    The docstring of the module is the map that people read.
    """
    seen: list[tuple[int, str]] = []
    parents = {}
    for line in (errors.__doc__ or "").splitlines():
        if match := re.match(r"(?P<indent>[ │├└─]*)(?P<name>[A-Z]\w+Error)\b", line):
            indent, name = len(match["indent"]), match["name"]
            seen = [(depth, known) for depth, known in seen if depth < indent]
            parents[name] = seen[-1][1] if seen else "Exception"
            seen.append((indent, name))

    assert {error.__name__: error.__bases__[0].__name__ for error in ALL_ERRORS} == parents


def test_a_missing_package_is_found_where_import_error_keeps_it() -> None:
    """
    ``ImportError.name`` is what tools look at.
    """
    assert "PIL" == MissingDependencyError("PIL", "local").name


@pytest.mark.parametrize(
    "error",
    [
        PolicyUnavailableError("p", "is away"),
        PolicyTimeoutError("p", "reply", 1.0),
        ModelServerUnavailableError("m", "is away"),
        ModelServerTimeoutError("m", "answer", 1.0),
    ],
)
def test_a_connection_error_has_no_number_of_the_system(error: OSError) -> None:
    """
    ``OSError`` takes the first of two arguments for one.
    """
    assert (None, None) == (error.errno, error.strerror)
