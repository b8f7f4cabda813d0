"""Answers in JSON: read, held to their schema, sent back once to be mended where that is wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from vlmcore._optional import optional_dependency
from vlmcore.contracts.json_found import find_json
from vlmcore.contracts.json_text import read_json, write_json
from vlmcore.errors import ContractError, StructureError
from vlmcore.limits import DocumentLimits, StructureLimits
from vlmcore.secrets import redact
from vlmcore.vlm import _schema_classes
from vlmcore.vlm.generation import Generation, GenerationOptions, StopReason
from vlmcore.vlm.outputs import JsonOutput
from vlmcore.vlm.prompt import Prompt

__all__ = ["instruction", "mended", "read_answer", "repair_prompt", "required", "structured"]

_LIMITS = StructureLimits()
_ANSWER = DocumentLimits(
    max_document_bytes=_LIMITS.max_answer_bytes,
    max_depth=_LIMITS.max_answer_depth,
    max_nodes=_LIMITS.max_answer_nodes,
)
_MOST_PARTS = 16  # objects and lists between words that are looked at
_ENDS = {
    StopReason.LENGTH: "is cut: max_new_tokens were written",
    StopReason.CANCELLED: "is cut: it was cancelled",
    StopReason.REPETITION: "is no answer: the model fell into a loop",
}


class _NotSoError(Exception):
    """An answer does not do: what is wrong, and where."""

    def __init__(self, *faults: tuple[str, str]) -> None:
        super().__init__(faults)
        self.faults = faults


def structured(generation: Generation, options: GenerationOptions, *, model: str) -> Generation:
    """
    Hold an answer to the output that *options* ask for.

    Args:
        generation: What a model answered.
        options: What was asked for.
        model: The model as the caller named it, for the error.

    Returns:
        The answer with its value, or with the error that says what is wrong with it; as it was
        where text was asked for.
    """
    output = options.output
    if output is None:
        return generation
    try:
        _require_whole(generation.stop_reason)
        return attrs.evolve(generation, parsed=_value(generation.text, output))
    except _NotSoError as error:
        listed = "; ".join(f"{path}: {problem}" for path, problem in error.faults)
        return attrs.evolve(
            generation,
            structure_error=StructureError(
                model,
                f"its answer is not what was asked for: {listed}",
                generation.text,
                generation.stop_reason.value,
                error.faults,
            ),
        )


def _require_whole(reason: StopReason) -> None:
    if reason is not StopReason.END:
        raise _NotSoError(("$", _ENDS.get(reason, "is not whole")))


def mended(
    generation: Generation,
    prompt: Prompt,
    options: GenerationOptions,
    ask: Callable[[Prompt], Generation],
) -> Generation:
    """
    Send a wrong answer back once, where *options* want that.

    Args:
        generation: An answer that `structured` has seen.
        prompt: What was asked.
        options: What was asked for.
        ask: Asks the model again, and gives an answer that `structured` has seen.

    Returns:
        The answer, or the second one, which need not be right; each counts the tokens of its own
        request only.
    """
    if not _is_to_be_mended(generation, options):
        return generation
    return ask(repair_prompt(prompt, generation, options))


def required(generation: Generation) -> Generation:
    """
    Require an answer that is what was asked for; one that was cancelled is no error.

    Raises:
        StructureError: If it is not.
    """
    error = generation.structure_error
    if error is not None and generation.stop_reason is not StopReason.CANCELLED:
        raise error
    return generation


def _is_to_be_mended(generation: Generation, options: GenerationOptions) -> bool:
    wants = options.output is not None and options.output.repair
    may_end_so = generation.stop_reason in (StopReason.END, StopReason.LENGTH)
    return wants and may_end_so and generation.structure_error is not None


def repair_prompt(prompt: Prompt, generation: Generation, options: GenerationOptions) -> Prompt:
    """Ask *prompt* again, with the answer that was wrong and what is wrong with it."""
    error = generation.structure_error
    faults = () if error is None else error.faults
    listed = "\n".join(f"- {path}: {problem}" for path, problem in faults)
    asked = "" if options.output is None else instruction(options.output)
    wrote = generation.text[: _LIMITS.max_quoted_characters]
    text = f"{prompt.text}\n\nYour last answer was:\n{wrote}\n\nIt is wrong:\n{listed}\n\n{asked}"
    return attrs.evolve(prompt, text=text)


def instruction(output: JsonOutput) -> str:
    """Say in words what the answer is to be, for a model that nothing keeps to it."""
    schema = output.plain_schema()
    if schema is None:
        return "Answer with one JSON object, and nothing else."
    written = write_json(schema, indent=None)
    return f"Answer with JSON that fits this JSON Schema, and nothing else:\n{written}"


def read_answer(text: str, output: JsonOutput) -> Any:
    """
    Read an answer as *output* says.

    JSON may stand alone, in a fence of Markdown, or between words, but once only.

    Returns:
        Plain values of JSON, or an instance of the class of *output*.

    Raises:
        ContractError: If it is not so.

    Example:
        >>> read_answer('Sure: {"name": "Rex"}', JsonOutput())
        {'name': 'Rex'}
    """
    try:
        return _value(text, output)
    except _NotSoError as error:
        listed = "; ".join(f"{path}: {problem}" for path, problem in error.faults)
        raise ContractError("answer", listed) from None


def _value(text: str, output: JsonOutput) -> Any:
    value = _parsed(text)
    if output.schema is None and not isinstance(value, dict):
        raise _NotSoError(("$", f"got {type(value).__name__}, expected an object"))
    _require_fit(value, output)
    return value if output.kind is None else _made(output.kind, value)


def _parsed(text: str) -> Any:
    try:
        return read_json(text.strip(), limits=_ANSWER)
    except ContractError as error:
        whole = error
    if len(text) > _LIMITS.max_answer_bytes:
        raise _NotSoError(("$", whole.problem)) from None
    found = find_json(text)
    if found.is_cut:
        raise _NotSoError(("$", f"is no whole JSON: {whole.problem}")) from None
    values = [value for part in found.parts[:_MOST_PARTS] for value in _read(part)]
    if len(values) == 1:
        return values[0]
    if values:
        raise _NotSoError(("$", f"got {len(values)} objects or lists, expected one")) from None
    raise _NotSoError(("$", f"is no JSON: {whole.problem}")) from None


def _read(text: str) -> tuple[Any, ...]:
    """Read what looks like JSON; it need not be any."""
    try:
        return (read_json(text, limits=_ANSWER),)
    except ContractError:
        return ()


def _require_fit(value: Any, output: JsonOutput) -> None:
    schema = output.plain_schema()
    if schema is None:
        return
    with optional_dependency("structure", "jsonschema"):
        from vlmcore.vlm import _jsonschema  # noqa: PLC0415 - the door
    try:
        faults = _jsonschema.faults_of(schema, value)
    except ContractError as error:
        raise _NotSoError(("$", f"{error.field}: {error.problem}")) from None
    if faults:
        raise _NotSoError(*faults)


def _made(kind: Any, value: Any) -> Any:
    try:
        if hasattr(kind, "model_validate"):
            return kind.model_validate(value)
        return _schema_classes.make_instance(kind, value)
    except Exception as error:  # the class is the caller's, and may raise anything
        why = redact(str(error), max_characters=200)
        problem = f"{kind.__name__} does not take it ({type(error).__name__}: {why})"
        raise _NotSoError(("$", problem)) from error
