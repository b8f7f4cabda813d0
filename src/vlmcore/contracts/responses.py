"""What policies answer, read as action chunks: each form in one way, or not at all."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import attrs

from vlmcore._arguments import shown
from vlmcore._arrays import as_tuple, require_member, require_names
from vlmcore.contracts._action_documents import action_chunk_from_document
from vlmcore.contracts._response_arrays import (
    ResponseAxes,
    is_numeric,
    join_streams,
    rows_of,
    streams_of,
)
from vlmcore.contracts._response_notes import described, words_of
from vlmcore.contracts.actions import ActionChunk, Stream
from vlmcore.errors import AmbiguousResponseError, ContractError, PolicyRefusedError
from vlmcore.limits import ContractLimits

__all__ = ["NEVER_STREAMS", "ResponseAxes", "chunk_from_response"]

#: Keys that tell something about an answer and are never a part of an action.
NEVER_STREAMS = frozenset(
    ("info", "metadata", "server_timing", "policy_timing", "timing", "latency_ms")
)
_LIMITS = ContractLimits()
_SOURCES = ("actions", "action")


def chunk_from_response(
    response: Any,
    *,
    names: tuple[str, ...],
    source: str,
    observed_at_s: float,
    streams: Mapping[str, int] | None = None,
    axes: ResponseAxes | None = None,
    ignored: Collection[str] = (),
) -> ActionChunk:
    """
    Read the answer of a policy.

    An answer is numbers under ``actions`` or ``action``, bare numbers, named streams, a pair of one
    of these and a mapping of notes, or a document of an action chunk. Shapes ``[D]``, ``[H, D]``
    and ``[1, H, D]`` are one chunk. Nothing is guessed: names that are not declared are no
    actions, and what can be read in two ways is refused.

    Args:
        response: The decoded answer.
        names: What the dimensions are, in the order in which the policy sends them.
        source: Which policy answered.
        observed_at_s: Reading of the caller's monotonic clock at the newest frame that it saw.
        streams: The named streams of the policy and how many dimensions each has, in the order of
            *names*; in whatever order they are sent, they are joined in this one.
        axes: The axes of the arrays, where shapes alone do not say: with one dimension, ``[7]``
            may be seven steps or a step of seven.
        ignored: Keys with numbers in them that are known not to be actions, as ``"state"``.

    Raises:
        PolicyRefusedError: If there is an ``error`` in it, whatever else there is.
        AmbiguousResponseError: If it can be read in more than one way; they are named.
        ContractError: If it is anything else.

    Example:
        >>> sent = {"gripper": [[1], [0]], "arm": [[0.1, 0.2], [0.3, 0.4]], "latency_ms": 12.5}
        >>> chunk = chunk_from_response(
        ...     sent,
        ...     names=("x", "y", "gripper"),
        ...     source="doc",
        ...     observed_at_s=0.0,
        ...     streams={"arm": 2, "gripper": 1},
        ... )
        >>> chunk.values.tolist(), chunk.metadata["latency_ms"]
        ([[0.1, 0.2, 1.0], [0.3, 0.4, 0.0]], 12.5)
    """
    names = as_tuple(names)
    _check_arguments(names, streams, axes, ignored)
    declared = _declared(streams, names)
    body, notes = _split_pair(response)
    inner = [body.get(key) for key in _SOURCES] if isinstance(body, Mapping) else []
    for part in (body, notes, *inner):
        if isinstance(part, Mapping) and part.get("error") is not None:
            raise PolicyRefusedError(source, words_of(part["error"]))
    if isinstance(body, Mapping) and body.get("schema") is not None:
        return _from_document(body, names, source, observed_at_s)
    parts: tuple[Stream, ...] = ()
    if isinstance(body, Mapping):
        found, more = _sort_keys(body, declared, ignored, names)
        said = {} if notes is None else {"info" if "info" not in more else "more_info": notes}
        notes = {**more, **said}
        if isinstance(found, Mapping):
            values, parts = join_streams(found, declared, axes), declared
        else:
            values = rows_of(found, len(names), axes, field="response.actions")
    else:
        values = rows_of(body, len(names), axes, field="response")
        notes = {} if notes is None else {"info": notes}
    return ActionChunk(
        values=values,
        names=names,
        source=source,
        observed_at_s=observed_at_s,
        streams=parts,
        metadata=described(notes),
    )


def _check_arguments(names: Any, streams: Any, axes: Any, ignored: Any) -> None:
    longest = _LIMITS.max_name_characters
    require_names("names", names, max_count=_LIMITS.max_actions, max_characters=longest)
    if streams is not None and not isinstance(streams, Mapping):
        raise ContractError("streams", f"got {shown(streams)}, expected dimensions by name")
    if axes is not None:
        require_member(ResponseAxes, axes=axes)
    # A part of a text is in it, too: "state" would ignore "at".
    if isinstance(ignored, (str, bytes)) or not isinstance(ignored, Collection):
        raise ContractError("ignored", f"got {shown(ignored)}, expected a collection of keys")


def _declared(streams: Mapping[str, int] | None, names: tuple[str, ...]) -> tuple[Stream, ...]:
    declared = streams_of(streams or {})
    wrong = sorted({stream.name for stream in declared} & {*NEVER_STREAMS, "error", "schema"})
    if wrong:
        raise ContractError(
            "streams", f"got {wrong}, expected none of the keys that are no streams"
        )
    if declared and declared[-1].end != len(names):
        raise ContractError(
            "streams",
            f"got {declared[-1].end} dimensions in all, expected one a name, {len(names)}",
        )
    return declared


def _split_pair(response: Any) -> tuple[Any, Mapping[str, Any] | None]:
    """Take ``[streams, info]`` apart; a mapping is no row of numbers."""
    if isinstance(response, (list, tuple)) and len(response) == 2:
        body, notes = response
        if isinstance(notes, Mapping) or (notes is None and isinstance(body, Mapping)):
            return body, notes
    return response, None


def _from_document(
    body: Mapping[str, Any], names: tuple[str, ...], source: str, observed_at_s: float
) -> ActionChunk:
    chunk = action_chunk_from_document(dict(body), observed_at_s=observed_at_s)
    _check_names(chunk.names, names)
    return attrs.evolve(chunk, source=source)


def _check_names(came: Any, names: tuple[str, ...]) -> None:
    if not isinstance(came, (list, tuple)) or tuple(came) != names:
        raise ContractError(
            "response.action_names",
            f"got {shown(came, 200)}, expected {', '.join(names)} in this order: "
            "numbers are not given to other names than their own",
        )


def _sort_keys(
    body: Mapping[str, Any],
    declared: tuple[Stream, ...],
    ignored: Collection[str],
    names: tuple[str, ...],
    sources: tuple[str, ...] = _SOURCES,
) -> tuple[Any, dict[str, Any]]:
    """Find the one source of actions, a value or a mapping of streams, and the notes."""
    streams = {stream.name: body[stream.name] for stream in declared if stream.name in body}
    whole = {key: body[key] for key in sources if key in body and key not in streams}
    notes, unknown = {}, []
    for key, value in body.items():
        if key in streams or key in whole or key in ignored or key in ("error", "schema"):
            continue
        if key == "action_names":
            if value is not None:
                _check_names(value, names)
        elif key not in NEVER_STREAMS and is_numeric(value):
            unknown.append(key)
        else:
            notes[key] = value
    readings = [repr(key) for key in whole]
    readings += [f"the streams {', '.join(streams)}"] if streams else []
    if len(readings) > 1:
        raise AmbiguousResponseError("response", tuple(readings), "one source of actions")
    if unknown:
        _refuse_unknown(unknown, readings)
    if not readings:
        keys = ", ".join(map(str, body)) or "none"
        raise ContractError("response", f"got the keys {keys:.200}, expected actions")
    found: Any = streams or next(iter(whole.values()))
    if isinstance(found, Mapping) and not streams:  # streams under "actions"
        inner, more = _sort_keys(found, declared, ignored, names, ())
        return inner, {**more, **notes}
    return found, notes


def _refuse_unknown(unknown: list[str], readings: list[str]) -> None:
    listed = ", ".join(repr(str(key)) for key in unknown)[:200]
    if not readings:
        raise AmbiguousResponseError(
            "response",
            (f"streams {listed}, in an order that is not known", "numbers that are no actions"),
            "declare streams=, with the dimensions of each in the order of the names",
        )
    raise ContractError(
        f"response[{shown(str(unknown[0]))}]",
        f"got numbers under {listed} beside {readings[0]}, expected declared streams only: "
        "name in ignored= what is no action",
    )
