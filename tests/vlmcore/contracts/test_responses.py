"""Tests of `vlmcore.contracts.responses`: an answer has one reading, or is refused."""

from __future__ import annotations

import http
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.documents import action_chunk_to_document
from vlmcore.contracts.responses import NEVER_STREAMS, ResponseAxes, chunk_from_response
from vlmcore.errors import (
    AmbiguousResponseError,
    ContractError,
    DocumentError,
    PolicyRefusedError,
    VlmcoreError,
)
from vlmcore.testing.contract_strategies import action_chunks, json_objects

ROWS = [[0.1, 0.2, 1.0], [0.3, 0.4, 0.0]]
NAMES = ("x", "y", "gripper")
PARTS = {"arm": 2, "gripper": 1}
SENT = {"gripper": [[1.0], [0.0]], "arm": [[0.1, 0.2], [0.3, 0.4]]}


def read(response: Any, names: tuple[str, ...] = NAMES, **more: Any) -> ActionChunk:
    return chunk_from_response(response, names=names, source="policy", observed_at_s=1.5, **more)


@pytest.mark.parametrize(
    "response",
    [
        ROWS,
        [ROWS],
        np.float32(ROWS),
        np.float64([ROWS]),
        list(np.float64(ROWS)),
        {"actions": ROWS},
        {"action": ROWS},
        {"actions": [ROWS]},
        {"actions": np.array(ROWS)},
        {"actions": ROWS, "error": None},
        [{"actions": ROWS}, {"latency_ms": 3}],
        (ROWS, {}),
        ({"action": ROWS}, None),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_actions_a_bare_array_and_a_pair_are_one_chunk(response: Any) -> None:
    """
    Of the shapes ``[H, D]`` and ``[1, H, D]``.
    """
    chunk = read(response)

    assert ROWS == pytest.approx(chunk.values)
    assert (NAMES, "policy", 1.5, ()) == (
        chunk.names,
        chunk.source,
        chunk.observed_at_s,
        chunk.streams,
    )


@pytest.mark.parametrize("response", [ROWS[0], {"actions": ROWS[0]}, np.array([ROWS[:1]])])
def test_a_row_of_as_many_numbers_as_there_are_names_is_one_step(response: Any) -> None:
    """
    The shape ``[D]``.
    """
    assert ROWS[:1] == read(response).values.tolist()


@pytest.mark.parametrize("sent", [SENT, dict(reversed(SENT.items())), {"actions": SENT}])
def test_streams_are_joined_in_the_order_in_which_they_are_declared(sent: Any) -> None:
    """
    Stream order = dict order from the wire ({"b", "a"} -> b first): not here; slices are kept.
    """
    chunk = read(sent, streams=PARTS)

    assert ROWS == chunk.values.tolist()
    assert [("arm", 0, 2), ("gripper", 2, 3)] == [(s.name, s.start, s.end) for s in chunk.streams]
    assert SENT["gripper"] == chunk.stream("gripper").tolist()


def test_a_pair_of_streams_and_info_is_read() -> None:
    """
    As GR00T servers send it; the info is kept beside the actions.
    """
    batched = {name: np.float32([rows]) for name, rows in SENT.items()}
    chunk = read([batched, {"steps": np.int64(4)}], streams=PARTS)

    assert ROWS == pytest.approx(chunk.values)
    assert {"info": {"steps": 4}} == {"info": dict(chunk.metadata["info"])}


@pytest.mark.parametrize("gripper", [[1.0, 0.0], [[1.0, 0.0]], [[[1.0], [0.0]]]])
@pytest.mark.parametrize("axes", [None, ResponseAxes.BATCH])
def test_a_gripper_without_its_axis_is_read_only_as_one_dimension(
    gripper: Any, axes: ResponseAxes | None
) -> None:
    """
    A squeezed gripper is accepted only if declared of width 1; declared as two, it does not fit.
    """
    arm = [SENT["arm"]]
    if axes is None or np.ndim(gripper) > 1:
        assert (
            ROWS == read({"arm": arm, "gripper": gripper}, streams=PARTS, axes=axes).values.tolist()
        )
    with pytest.raises(ContractError, match=r"^response.*: got (shape|a batch|streams of)"):
        read(
            {"arm": [[[0.1], [0.3]]], "gripper": gripper},
            streams={"arm": 1, "gripper": 2},
            axes=axes,
        )


@pytest.mark.parametrize(
    ("response", "readings"),
    [
        ({"actions": ROWS, "action": ROWS}, ("'actions'", "'action'")),
        ({"action": ROWS, **SENT}, ("'action'", "the streams arm, gripper")),
        ({"actions": ROWS, "arm": SENT["arm"]}, ("'actions'", "the streams arm")),
    ],
)
def test_streams_beside_actions_are_not_silently_ignored(
    response: Any, readings: tuple[str, ...]
) -> None:
    """
    Streams silently ignored; both "actions" and "action": first wins. Here neither wins.
    """
    with pytest.raises(AmbiguousResponseError, match="expected one: one source of act") as caught:
        read(response, streams=PARTS)
    assert readings == caught.value.readings


def test_a_state_beside_streams_is_no_action_stream() -> None:
    """
    State concatenated as an action stream (dim 5 instead of 3): unknown numeric keys are refused.
    """
    with pytest.raises(
        ContractError, match=r"^response\['state'\]: got numbers under 'state' besi"
    ):
        read({**SENT, "state": [1.0, 2.0]}, streams=PARTS)
    with pytest.raises(ContractError, match=r"^response\['state'\]: .* name in ignored="):
        read({"actions": ROWS, "state": np.zeros(3)})
    assert ROWS == read({"actions": ROWS, "state": np.zeros(3)}, ignored=("state",)).values.tolist()


@pytest.mark.parametrize("more", [3, 3.5, [1], [[2.5]], np.zeros(2, bool), np.float32(1)])
def test_numbers_of_any_kind_under_unknown_keys_are_refused(more: Any) -> None:
    """
    Also a single one.
    """
    with pytest.raises(ContractError, match=r"^response\['more'\]: got numbers"):
        read({"actions": ROWS, "more": more})


def test_streams_that_are_not_declared_have_no_order() -> None:
    """
    Stream order = dict order from the wire: nothing ties it to the names of the dimensions.
    """
    with pytest.raises(AmbiguousResponseError, match=r"streams 'gripper', 'arm', in an order that"):
        read(SENT)


@pytest.mark.parametrize("key", sorted(NEVER_STREAMS))
def test_a_key_that_is_never_a_stream_is_kept_as_metadata(key: str) -> None:
    """
    Whatever is in it; and it cannot be declared as a stream.
    """
    chunk = read({"actions": ROWS, key: [1.0, {"infer_ms": np.float32(2.5)}]})

    assert (1.0, {"infer_ms": 2.5}) == chunk.metadata[key]
    with pytest.raises(ContractError, match=rf"^streams: got \['{key}'\]"):
        read(SENT, streams={"arm": 2, key: 1})


@pytest.mark.parametrize(
    "response",
    [
        {"error": "no camera 'side'", "actions": ROWS},
        {"error": "no camera 'side'"},
        [{"actions": ROWS}, {"error": "no camera 'side'"}],
        {"actions": {**SENT, "error": "no camera 'side'"}},
    ],
)
def test_the_error_key_wins_over_actions(response: Any) -> None:
    """
    {"error": ..., "actions": ...} executes the actions: not here, and the policy's words are told.
    """
    with pytest.raises(PolicyRefusedError, match=r"^policy: no camera 'side'$"):
        read(response, streams=PARTS)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("x" * 5000, "x" * 1000),
        ("a\x1b[31m\x00b", "a [31m b"),
        ('Traceback:\n  File "/home/me/arm.py", line 1\nKeyError: 0', "KeyError: 0"),
        ({"code": 3}, "{'code': 3}"),
        (b"raw", "bytes of 3"),
        (False, "False"),
    ],
)
def test_the_words_of_an_error_are_cut_and_can_be_shown(error: Any, words: str) -> None:
    """
    In a terminal, too.
    """
    with pytest.raises(PolicyRefusedError) as caught:
        read({"error": error, "actions": ROWS})
    assert words == caught.value.problem


@pytest.mark.parametrize("response", [[1.0, 2.0, 3.0], [[1.0, 2.0, 3.0]], np.zeros(7)])
def test_one_dimension_makes_three_numbers_ambiguous(response: Any) -> None:
    """
    [a, b, c] read as one step of 3 dims; for a 1-DoF robot a 3-step chunk is misread. Not here.
    """
    with pytest.raises(AmbiguousResponseError, match=r"steps of one dimension or one step of"):
        read(response, names=("x",))


def test_declared_axes_decide() -> None:
    """
    And must be those of what is sent.
    """
    column = [[1.0], [2.0], [3.0]]
    assert column == read([1, 2, 3], names=("x",), axes=ResponseAxes.SCALARS).values.tolist()
    assert (
        column == read([[1, 2, 3]], names=("x",), axes=ResponseAxes.SCALARS_BATCH).values.tolist()
    )
    assert ROWS == read(ROWS, axes=ResponseAxes.CHUNK).values.tolist()
    assert [[1.0]] == read([1], names=("x",)).values.tolist()
    assert [[1.0]] == read([[[1]]], names=("x",)).values.tolist()
    with pytest.raises(ContractError, match=r"^response: got axes \[H\] for 2 dimensions"):
        read([1, 2], names=("x", "y"), axes=ResponseAxes.SCALARS)
    for axes in set(ResponseAxes) - {ResponseAxes.CHUNK}:
        with pytest.raises(ContractError, match=r"^response: got "):
            read(ROWS, axes=axes)


@pytest.mark.parametrize("batch", [2, 0])
def test_a_batch_other_than_one_is_refused_by_name(batch: int) -> None:
    """
    Which of them would be meant?
    """
    with pytest.raises(ContractError, match=f"got a batch of {batch}, expected a batch of 1"):
        read(np.zeros((batch, 4, 3)))


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (None, "got NoneType"),
        ("0.1", "got str"),
        (b"ERROR", "got bytes"),
        (0.5, "got float"),
        ([], r"got shape \[0\]"),
        ([[]], r"got shape \[1, 0\]"),
        (np.zeros(()), "got ndarray"),
        (np.zeros((1, 1, 4, 3)), "got more than three axes"),
        ([[[[1.0]]]], "got more than three axes"),
        (np.zeros((4, 2)), r"got shape \[4, 2\], expected axes \[H, D\] with 3 dimensions"),
        (np.zeros((3, 4)), r"got shape \[3, 4\]"),
        (np.zeros((4, 3), np.uint8), "got uint8"),
        (np.zeros((4, 3), bool), "got bool"),
        (np.zeros((4, 3), complex), "got complex128"),
        (np.zeros((4, 3), object), "got object"),
        ([["1.5", "2", "3"]], "got '1.5', expected a number"),
        ([[True, 2, 3]], "got True"),
        ([[2**60, 2, 3]], "got 1152921504606846976"),
        ([[1.0, 2.0, 3.0], [1.0]], "got shape"),
        ({}, "got the keys none, expected actions"),
        ({"status": "ok"}, "got the keys status, expected actions"),
        ({"actions": None}, "got NoneType"),
        ({"actions": {}}, "got the keys none"),
        ({"actions": {"actions": ROWS}}, "may be streams 'actions'"),
        (
            {"actions": ROWS, "action_names": ["y", "x", "gripper"]},
            "expected x, y, gripper in this",
        ),
        ({"actions": ROWS, "action_names": "xyz"}, "expected x, y, gripper in this order"),
        ({"arm": SENT["arm"]}, r"got streams without \['gripper'\]"),
        (SENT | {"arm": [[0.1, 0.2]]}, "got streams of {'arm': 1, 'gripper': 2} steps"),
        (SENT | {"arm": "x"}, "got str"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_what_is_no_chunk_is_refused(response: Any, message: str) -> None:
    """
    One clear error each.
    """
    with pytest.raises(ContractError, match=f"^response.*: .*{message}"):
        read(response, streams=PARTS)


@pytest.mark.parametrize(
    ("streams", "message"),
    [
        ({"arm": 2}, "^streams: got 2 dimensions in all, expected one a name, 3"),
        ({"arm": 0, "gripper": 3}, r"^streams\['arm'\]: got 0"),
        ({"arm": True, "gripper": 2}, r"^streams\['arm'\]: got True"),
        ({"error": 3}, r"^streams: got \['error'\]"),
    ],
)
def test_declared_streams_have_as_many_dimensions_as_there_are_names(
    streams: dict[str, int], message: str
) -> None:
    """
    So that each number has its name.
    """
    with pytest.raises(ContractError, match=message):
        read(SENT, streams=streams)


def test_names_that_the_policy_sends_must_be_those_that_are_expected() -> None:
    """
    Actions named (y, x) are not relabelled (x, y).
    """
    assert NAMES == read({"actions": ROWS, "action_names": list(NAMES)}).names
    assert NAMES == read({"actions": ROWS, "action_names": None}).names


def test_nan_and_infinity_are_left_for_the_gate() -> None:
    """
    It counts them, and its report is what people look at.
    """
    assert not read(np.float32([[math.nan, math.inf, -0.0]])).is_finite


def test_a_document_of_a_chunk_is_an_answer() -> None:
    """
    With its own names; when it was observed is for the caller's clock to say.
    """
    chunk = read(ROWS)
    document = action_chunk_to_document(chunk) | {"observed_at_s": 99.0, "source": "other"}

    assert chunk == read(document)
    with pytest.raises(ContractError, match=r"^response.action_names: got \('x', 'y', 'gripper'\)"):
        read(document, names=("y", "x", "gripper"))
    with pytest.raises(DocumentError):
        read(document | {"schema": "comfyui-vlm/robot-action-safety"})


def test_what_json_cannot_hold_is_told_in_words() -> None:
    """
    Notes are no reason to refuse actions.
    """
    again: list[Any] = []
    again.append(again)
    notes = {
        "nan": math.nan,
        "array": np.zeros((2, 3), np.float32),
        "long": [0] * 1000,
        "bytes": b"abc",
        "huge": 1 << 70,
        "thing": object(),
        "text": "\ud800",
        3: True,
        "again": again,
    }
    info = read([{"actions": ROWS, "info": "x"}, notes]).metadata["more_info"]

    assert {
        "nan": "nan",
        "array": "float32 array of shape [2, 3]",
        "long": "list of 1000",
        "bytes": "bytes of 3",
        "huge": "a number of more than 64 bits",
        "thing": "object",
        "text": "?",
        "3": True,
    } == {key: value for key, value in info.items() if key != "again"}
    assert "list of 1" in repr(info["again"])


@given(action_chunks(hostile=True), st.randoms())
def test_however_a_chunk_is_sent_it_is_read_the_same(chunk: ActionChunk, random: Any) -> None:
    """
    Streams in any order, arrays or lists, with and without a batch.
    """
    if not chunk.streams:
        sent: Any = {"actions": chunk.values[np.newaxis]}
    else:
        parts = [(stream.name, chunk.stream(stream.name)) for stream in chunk.streams]
        random.shuffle(parts)
        sent = dict(parts)
    streams = {stream.name: stream.end - stream.start for stream in chunk.streams}
    reserved = NEVER_STREAMS | {"error", "schema", "action_names", "actions", "action"}
    if reserved & streams.keys():
        return
    found = read(sent, names=chunk.names, streams=streams or None)

    assert chunk.values.tobytes() == found.values.tobytes()
    assert chunk.streams == found.streams


ANYTHING = json_objects() | st.recursive(
    st.floats() | st.integers() | st.none() | st.text(max_size=3) | st.just(np.zeros((2, 3))),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(("actions", "action", "arm", "gripper", "info", "a")), inner
        )
    ),
    max_leaves=8,
)


@given(ANYTHING)
def test_any_answer_gives_a_chunk_or_our_error(response: Any) -> None:
    """
    Nothing else is raised.
    """
    try:
        chunk = read(response, streams=PARTS)
    except VlmcoreError:
        return
    assert NAMES == chunk.names


def test_the_status_of_an_answer_is_a_note() -> None:
    """
    It is a whole number of a class of its own, for which a range is searched from end to end.
    """
    sent = {"actions": [[0.0]], "info": {"status": http.HTTPStatus.OK}}
    chunk = chunk_from_response(sent, names=("x",), source="test", observed_at_s=0.0)
    assert {"status": 200} == dict(chunk.metadata["info"])


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        *(("names", wrong) for wrong in (None, 1, "xy", ("x", "x"), (1, 2), np.zeros(2))),
        *(("streams", wrong) for wrong in (1, "arm", [("arm", 2)], np.zeros(0), ())),
        *(("axes", wrong) for wrong in (1, "steps", [], {}, np.zeros(2))),
        *(("ignored", wrong) for wrong in (None, 1, "state", b"state")),
    ],
    ids=str,
)
def test_what_is_no_argument_of_a_reader_is_told_by_its_name(field: str, wrong: Any) -> None:
    """
    A text for `ignored` was taken, and ignored the streams "at" and "s"; others raised a TypeError.
    """
    fields = {"names": ("x", "y"), "source": "test", "observed_at_s": 0.0, field: wrong}
    with pytest.raises(ContractError, match=rf"^{field}\b.*: got "):
        chunk_from_response({"actions": [[0.0, 0.0]], "at": [1.0]}, **fields)
