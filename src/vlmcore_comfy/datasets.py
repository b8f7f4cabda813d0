"""What the node of datasets does: a folder of ComfyUI's input, captioned by the engine of jobs."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import attrs

from vlmcore.errors import ContractError
from vlmcore.jobs import (
    CaptionPlan,
    CaptionPrompt,
    CaptionTemplate,
    FolderImages,
    JobProgress,
    JobReport,
    Sidecars,
    Table,
    TableKind,
    caption_images,
)
from vlmcore.vlm.generation import GenerationOptions
from vlmcore_comfy.folders import place_in
from vlmcore_comfy.hosting import Host
from vlmcore_comfy.models import ModelChoice, opened

__all__ = ["Dataset", "caption_dataset", "report_of"]

_TABLE = "captions.jsonl"


@attrs.frozen(kw_only=True)
class Dataset:
    """
    A dataset to be made.

    Attributes:
        images: The folder of the images, in ComfyUI's input folder; blank is all of that.
        name: The folder of the dataset, in its output folder.
        is_table: Whether captions go into one JSONL file, and not into one text file an image.
        prompt: What is asked about each image.
        system: The system's text.
        prefix: What stands before each caption.
        trigger: The word that training ties to what is seen.
        max_new_tokens: How long a caption may be.
        retry_failed: Whether images are tried again that failed before.
    """

    images: str
    name: str
    is_table: bool
    prompt: str
    system: str
    prefix: str
    trigger: str
    max_new_tokens: int
    retry_failed: bool

    def plan(self, comfyui: Host) -> CaptionPlan:
        """
        Say what is to be done.

        Raises:
            ContractError: If a folder is outside of ComfyUI's, or the images are not there.
        """
        where = place_in(
            comfyui.input_folder,
            self.images,
            field="images",
            what="a folder in ComfyUI's input folder",
        )
        if not where.is_dir():
            raise ContractError("images", f"{self.images.strip()!a:.80} is no folder of the input")
        place = self.place(comfyui)
        table = Table(path=place / _TABLE, kind=TableKind.JSONL)
        return CaptionPlan(
            source=FolderImages(where),
            prompts=CaptionPrompt(
                text=self.prompt,
                system=self.system,
                options=GenerationOptions(max_new_tokens=self.max_new_tokens),
            ),
            sidecars=None if self.is_table else Sidecars(folder=place),
            tables=(table,) if self.is_table else (),
            template=CaptionTemplate(prefix=self.prefix, trigger=self.trigger.strip()),
            retry_failed=self.retry_failed,
        )

    def place(self, comfyui: Host) -> Path:
        """
        Say where the dataset is made.

        Raises:
            ContractError: If it is outside of ComfyUI's output folder, or that folder itself.
        """
        place = place_in(
            comfyui.output_folder,
            self.name,
            field="dataset",
            what="a folder in ComfyUI's output folder",
        )
        if not self.name.strip():
            raise ContractError("dataset", "is blank, expected a name for its folder")
        return place


def caption_dataset(
    dataset: Dataset, choice: ModelChoice, *, unload: bool, comfyui: Host
) -> JobReport:
    """
    Make a dataset, and go on where an earlier graph ended.

    Stopped, it ends after what is being answered, with everything written.

    Raises:
        NodeStoppedError: If the person stopped the graph.
        VlmcoreError: If it cannot be made.
    """
    plan = dataset.plan(comfyui)
    dataset.place(comfyui).mkdir(parents=True, exist_ok=True)
    stop = threading.Event()

    def tell(progress: JobProgress) -> None:
        comfyui.show_text(f"{progress.done} of {progress.total or '?'} images")
        if progress.total:
            comfyui.progress(progress.done, progress.total)

    with (
        opened(choice, comfyui, unload=unload) as predictor,
        comfyui.when_stopped(stop.set),
    ):
        report = caption_images(plan, predictor, progress=tell, stop=stop)
    comfyui.raise_if_stopped()
    return report


def report_of(report: JobReport, dataset: Dataset) -> dict[str, Any]:
    """Write down how it ended, for people and programs."""
    return {
        "dataset": dataset.name.strip(),
        "images": report.total,
        "results": {result.value: count for result, count in report.counts.items() if count},
        "cut": report.cut,
        "failures": [
            {"image": failure.key, "problem": failure.problem} for failure in report.failures
        ],
        "elapsed_s": round(report.elapsed_s, 3),
        "model": report.model,
    }
