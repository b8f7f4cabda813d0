"""
Write the pages of the reference that are made from the code; ``--check`` only compares.

Limits, errors, models and the command's help have one home, the code; these pages repeat it for
people who read in a browser. A test compares, so a page cannot fall behind.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import attrs

from vlmcore import errors, limits
from vlmcore.charts.drawing import draw_svg
from vlmcore.cli import main as command
from vlmcore.contracts import schemas
from vlmcore.contracts._charts import chart_of
from vlmcore.contracts.schemas import DocumentKind
from vlmcore.lab import artifact_schema, suite_documents
from vlmcore.lab.reporting import report_html
from vlmcore.policy.catalog import POLICIES, Readiness
from vlmcore.rollout import documents as rollout_documents
from vlmcore.rollout import episode_schemas, open_loop_documents
from vlmcore.safety import documents as safety_documents
from vlmcore.vision import documents as vision_documents
from vlmcore.vision import track_documents
from vlmcore.vlm.catalog import MODELS
from vlmcore.weights import manifest_schema
from vlmcore_comfy.catalog import load_catalog
from vlmcore_comfy.declaring import Input, Node
from vlmcore_robotics.wire.http_openapi import openapi

REFERENCE = Path(__file__).parent / "reference"
DOCUMENTS = {
    **schemas.DOCUMENTS,
    **safety_documents.DOCUMENTS,
    **rollout_documents.DOCUMENTS,
    **episode_schemas.DOCUMENTS,
    **open_loop_documents.DOCUMENTS,
    **vision_documents.DOCUMENTS,
    **track_documents.DOCUMENTS,
}
NOTE = "% Made from the code by `nox -s regen`: change it there."


def pages() -> dict[str, str]:
    """Write every page, by the name of its file."""
    return {
        "errors.md": errors_page(),
        "limits.md": limits_page(),
        "models.md": models_page(),
        "policies.md": policies_page(),
        "command.md": command_page(),
        "comfyui-nodes.md": comfyui_nodes_page(),
        "robot-documents.md": robot_documents_page(),
        "pictures/chunk.svg": chunk_picture(),
        "lab-report.html": lab_report(),
        **{f"schemas/{name}.json": schema_file(kind) for name, kind in DOCUMENTS.items()},
        **{
            f"schemas/{name}.json": schema_file(kind)
            for name, kind in manifest_schema.DOCUMENTS.items()
        },
        **{
            f"schemas/{name}.json": schema_file(kind)
            for name, kind in (artifact_schema.DOCUMENTS | suite_documents.DOCUMENTS).items()
        },
        "schemas/comfyui-vla-http-v1.json": json.dumps(openapi(), indent=2),
    }


def chunk_picture() -> str:
    """Draw the chunk that the first example of the page on looking at actions makes."""
    page = (REFERENCE.parent / "how-to/look-at-actions.md").read_text(encoding="utf-8")
    example = page.partition("```python\n")[2].partition("```")[0]
    made: dict[str, Any] = {}
    exec(example, made)  # noqa: S102 - a page of our own, which the tests run too
    chunk = made["chunk"]
    chart = chart_of(
        chunk.values,
        chunk.names,
        title=f"{chunk.source}: {chunk.horizon} x {len(chunk.names)}",
        space=made["space"],
        report=made["report"],
        last_command=chunk.values[0],
    )
    return draw_svg(chart)


def lab_report() -> str:
    """Write the report of the artifacts that were measured with the embedded model."""
    artifacts = sorted((REFERENCE.parents[1] / "bench/lab/artifacts").glob("*.json"))
    return report_html(artifacts, title="The embedded model in the speed lab")


def comfyui_nodes_page() -> str:
    """Write what each node takes and gives, as workflows hold it."""
    nodes = sorted(load_catalog().nodes.values(), key=lambda node: (node.category, node.title))
    lines = [
        NOTE,
        "",
        "# Nodes of ComfyUI",
        "",
        "By their place in the menu. An input in italics may be left out. Graphs name a node by",
        "what stands in brackets; [how to put them there](../how-to/run-in-comfyui.md).",
    ]
    category = ""
    for node in nodes:
        if node.category != category:
            category = node.category
            lines += ["", f"## {category.replace('/', ' / ')}"]
        lines += ["", *_node_lines(node)]
    return "\n".join(lines)


def _node_lines(node: Node[..., Any]) -> list[str]:
    needs = f" Needs the extras {', '.join(node.extras)}." if node.extras else ""
    outputs = ", ".join(f"`{each.name}` {_type(each.type)}" for each in node.outputs)
    lines = [f"### {node.title} (`{node.id}`)", "", f"{node.description}{needs}", ""]
    if node.inputs:
        lines += ["| input | type | |", "| --- | --- | --- |", *map(_input_line, node.inputs), ""]
    return [*lines, f"Gives {outputs}." if outputs else "Gives nothing."]


def _type(name: str) -> str:
    return "anything" if name == "*" else name


def _input_line(declared: Input) -> str:
    name = f"*`{declared.name}`*" if declared.is_optional else f"`{declared.name}`"
    said = [declared.tooltip.rstrip(".")] if declared.tooltip else []
    options = declared.options
    if declared.model_kind:
        said.append("The files that are there are offered")
    elif "options" in options:
        labels = [str(label) for label in options["options"]]
        said.append(", ".join(labels) if len(labels) < 8 else f"{len(labels)} choices")
    if "min" in options:
        said.append(f"{options['min']} to {options['max']}")
    return f"| {name} | {_type(declared.type)} | {'. '.join(said)} |"


def errors_page() -> str:
    """Write what each error carries, and their tree as the code's docstring draws it."""
    lines = [
        NOTE,
        "",
        "# Errors",
        "",
        "Errors carry their data as attributes, to be read without parsing text, and can be",
        "pickled. `except vlmcore.VlmcoreError` catches them all.",
        "",
        "| error | also a | attributes |",
        "| --- | --- | --- |",
    ]
    for name in errors.__all__:
        error = getattr(errors, name)
        lineage = error.__mro__
        builtins = [base.__name__ for base in lineage if base.__module__ == "builtins"]
        also = [base for base in builtins if base not in ("Exception", "BaseException", "object")]
        documented = [attribute_docs(base.__doc__ or "") for base in lineage]
        fields = [f"`{field}`" for pairs in documented for field, _ in pairs]
        cells = (name, ", ".join(also), ", ".join(fields))
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "```{eval-rst}", ".. automodule:: vlmcore.errors", "   :members:"]
    lines += ["   :show-inheritance:", "```"]
    return "\n".join(lines)


def limits_page() -> str:
    """Write every bound with its default and its meaning."""
    lines = [
        NOTE,
        "",
        "# Limits",
        "",
        "Limits guard doors: they are checked where something comes in from outside, before memory",
        "is spent on it. Pass a group with other values to the door that takes it.",
    ]
    for name in limits.__all__:
        group = getattr(limits, name)
        if not attrs.has(group):
            continue
        lines += ["", f"## {name}", "", first_sentence(group), "", "| limit | default | what |"]
        lines += ["| --- | --: | --- |"]
        meanings = dict(attribute_docs(group.__doc__ or ""))
        for field in attrs.fields(group):
            lines.append(f"| `{field.name}` | {field.default:,} | {meanings[field.name]} |")
    lines += ["", "```{eval-rst}", ".. automodule:: vlmcore.limits", "   :members:", "```"]
    return "\n".join(lines)


def models_page() -> str:
    """Write the catalog as a table."""
    lines = [
        NOTE,
        "",
        "# Models",
        "",
        "`load_predictor` takes a key of this table, a label, a folder, or any other id of the",
        'hub; `"embedded"` is [the model in the package](../explanation/embedded-model.md). Memory',
        "is an estimate for 16-bit weights while generating.",
        "",
        "| key | label in workflows | repository | memory, GiB | |",
        "| --- | --- | --- | --: | --- |",
    ]
    for model in MODELS:
        repository = f"`{model.repo_id}`" if model.repo_id else "any"
        notes = {
            "recommended": model.recommended,
            "video": model.video,
            "thinking": model.thinking,
            "licence to accept first": model.gated,
        }
        said = ", ".join(note for note, holds in notes.items() if holds)
        memory = f"{model.bf16_gib:g}" if model.bf16_gib else ""
        lines.append(f"| `{model.key}` | {model.label} | {repository} | {memory} | {said} |")
    return "\n".join(lines)


def policies_page() -> str:
    """Write the catalog of policies, and what each readiness means."""
    lines = [
        NOTE,
        "",
        "# Policies",
        "",
        "Vision-language-action policies that are known by name.",
        "{py:func}`~vlmcore.policy.catalog.find_policy` takes a key, a label, a type or a",
        "checkpoint of this table. Nothing is downloaded or run, and no policy makes its own",
        "actions safe: [vet them](../how-to/vet-actions.md).",
        "",
        "| readiness | what it means |",
        "| --- | --- |",
    ]
    lines += [f"| {readiness.value} | {readiness.advice} |" for readiness in Readiness]
    lines += [
        "",
        "*Tuned for* names robots and benchmarks that there are fine-tuned weights for; those of",
        "a base policy are other weights than its checkpoint.",
        "",
        "| key | label in workflows | type | checkpoint | run by | scale | readiness | tuned for |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for spec in POLICIES:
        cells = (
            f"[`{spec.key}`]({spec.url})",
            spec.label,
            f"`{spec.policy_type}`",
            f"`{spec.checkpoint}`" if spec.checkpoint else "none",
            ", ".join(runtime.value for runtime in spec.runtimes),
            spec.scale,
            spec.readiness.value,
            ", ".join(spec.fine_tuned_for),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


_COMMANDS = (
    "describe",
    "actions check",
    "actions plot",
    *(f"weights {name}" for name in ("inspect", "verify", "pack", "unpack", "load", "tune")),
    "doctor",
    "catalog",
    *(f"policy {name}" for name in ("serve", "call", "doctor", "conformance")),
    *(f"policy {name}" for name in ("record", "replay", "eval", "export")),
)


def command_page() -> str:
    """Write the help of the command and of its sub-commands."""
    lines = [NOTE, "", "# The command `vlmcore`", "", "```text", help_of(), "```"]
    for name in _COMMANDS:
        lines += ["", f"## vlmcore {name}", "", "```text", help_of(*name.split()), "```"]
    return "\n".join(lines)


def robot_documents_page() -> str:
    """Write the keys of each document of robots."""
    lines = [
        NOTE,
        "",
        "# Documents of robots",
        "",
        "What `vlmcore.contracts.documents` and `vlmcore.safety.documents` read and write, as",
        "JSON. Reading is strict: keys that are not listed here are refused, and all faults are",
        "told at once, each with its place. A missing `schema` or `version` means version 1.",
    ]
    for name, kind in DOCUMENTS.items():
        lines += [
            "",
            f"## {kind.schema_id}",
            "",
            f"{kind.title} [JSON Schema](schemas/{name}.json)",
        ]
        lines += ["", "| key | | what |", "| --- | --- | --- |"]
        for key, field in kind.keys.items():
            notes = ["may be missing"] if field.optional else []
            notes += [f"also read as `{field.alias}`"] if field.alias else []
            lines.append(f"| `{key}` | {', '.join(notes)} | {field.meaning} |")
    return "\n".join(lines)


def schema_file(kind: DocumentKind) -> str:
    """Write the JSON Schema of a document."""
    return json.dumps(kind.json_schema(), indent=2)


def help_of(*words: str) -> str:
    """Run ``vlmcore ... --help`` at a width of 80 columns, without colours."""
    printed = io.StringIO()
    plain = {"COLUMNS": "80", "NO_COLOR": "1", "PYTHON_COLORS": "0"}
    with mock.patch.dict(os.environ, plain), contextlib.redirect_stdout(printed):
        command([*words, "--help"])
    return printed.getvalue().rstrip()


def first_sentence(thing: object) -> str:
    """Take the summary of a docstring."""
    return (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ")


def attribute_docs(docstring: str) -> Iterator[tuple[str, str]]:
    """Read the ``Attributes`` section of a docstring: names and their descriptions."""
    section = inspect.cleandoc(docstring).partition("Attributes:\n")[2].partition("\n\n")[0]
    for entry in re.split(r"\n(?=    \w)", "\n" + section):
        name, _, meaning = entry.strip().partition(": ")
        if name:
            yield name, " ".join(meaning.split())


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or compare the pages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare and write nothing")
    options = parser.parse_args(arguments)
    stale = []
    for name, text in pages().items():
        file = REFERENCE / name
        if not file.exists() or file.read_text(encoding="utf-8") != f"{text}\n":
            stale.append(name)
            if not options.check:
                file.parent.mkdir(exist_ok=True)
                file.write_text(f"{text}\n", encoding="utf-8")
    word = "out of date" if options.check else "written"
    print(f"{word}: {', '.join(stale)}" if stale else "every page is up to date")  # noqa: T201
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
