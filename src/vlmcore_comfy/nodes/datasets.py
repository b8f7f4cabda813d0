"""The node that captions a folder of images, for training sets and search."""

from __future__ import annotations

from typing import Any

from vlmcore_comfy.declaring import (
    Node,
    NodeResult,
    Output,
    boolean,
    choice,
    integer,
    node,
    text,
)
from vlmcore_comfy.hosting import ALONE, Host
from vlmcore_comfy.nodes.models import MEMORY, MODELS

__all__ = ["NODES", "caption_dataset"]

_FILES = "A text file for each image"
_TABLE = "One JSONL file"


@node(
    "VLMCaptionDataset",
    title="VLM Caption Dataset",
    category="Modern",
    description="Captions every image of a folder with a model on this machine, and goes on where "
    "it ended: what is done is not asked again, also after ComfyUI was killed.",
    inputs=(
        text("images", tooltip="A folder in ComfyUI's input folder; blank is all of that"),
        text("dataset", "captions", tooltip="The folder that is made in ComfyUI's output folder"),
        choice("form", (_FILES, _TABLE), _FILES),
        text("prompt", "Describe this image in one sentence.", multiline=True),
        choice("model", MODELS, "Qwen 3 VL 2B Instruct"),
        text("custom_model_id", tooltip="An id of the hub, as org/name, or a folder of models/LLM"),
        choice("memory_mode", MEMORY, MEMORY[0]),
        integer("max_new_tokens", 128, 1, 16384),
        text("system_prompt", multiline=True, is_optional=True),
        text("prefix", is_optional=True, tooltip="What stands before each caption"),
        text("trigger_word", is_optional=True, tooltip="The word that training ties to the images"),
        boolean("retry_failed", default=False, is_optional=True),
        boolean("unload_after", default=False, is_optional=True),
    ),
    outputs=(
        Output("STRING", "report_json"),
        Output("INT", "images"),
        Output("INT", "failed"),
    ),
    extras=("local", "jobs"),
    is_output=True,
    is_threaded=True,
    changes=lambda **_: float("nan"),  # images may have come, and what is done costs nothing
)
def caption_dataset(
    images: str,
    dataset: str,
    form: str,
    prompt: str,
    model: str,
    custom_model_id: str,
    memory_mode: str,
    max_new_tokens: int,
    system_prompt: str = "",
    prefix: str = "",
    trigger_word: str = "",
    retry_failed: bool = False,
    unload_after: bool = False,
    *,
    comfyui: Host = ALONE,
) -> NodeResult:
    """Caption a folder."""
    from vlmcore.contracts.json_text import write_json
    from vlmcore_comfy import datasets
    from vlmcore_comfy.models import ModelChoice

    wanted = datasets.Dataset(
        images=images,
        name=dataset,
        is_table=form == _TABLE,
        prompt=prompt,
        system=system_prompt,
        prefix=prefix,
        trigger=trigger_word,
        max_new_tokens=max_new_tokens,
        retry_failed=retry_failed,
    )
    chosen = ModelChoice(model, custom_model_id, memory_mode)
    report = datasets.caption_dataset(wanted, chosen, unload=unload_after, comfyui=comfyui)
    said = write_json(datasets.report_of(report, wanted), indent=2)
    return NodeResult((said, report.total, report.failed), {"text": [said]})


NODES: tuple[Node[..., Any], ...] = (caption_dataset,)
