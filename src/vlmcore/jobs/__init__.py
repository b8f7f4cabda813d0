"""
Jobs over many images: a folder in, a caption beside every image or a table out.

A job keeps a journal of what it has done. It may be stopped or killed at any time, and the same job
goes on where it was.
"""

from __future__ import annotations

from vlmcore.jobs.captioning import caption_images
from vlmcore.jobs.plans import CaptionPlan
from vlmcore.jobs.prompts import CaptionPrompt
from vlmcore.jobs.reports import JobProgress, JobReport, Result
from vlmcore.jobs.sinks.settings import ExistingCaption, NameClash, Sidecars, Table
from vlmcore.jobs.sinks.tables import TableKind
from vlmcore.jobs.sources.folders import FolderImages
from vlmcore.jobs.templates import CaptionTemplate, Cut, PromptTemplate

__all__ = [
    "CaptionPlan",
    "CaptionPrompt",
    "CaptionTemplate",
    "Cut",
    "ExistingCaption",
    "FolderImages",
    "JobProgress",
    "JobReport",
    "NameClash",
    "PromptTemplate",
    "Result",
    "Sidecars",
    "Table",
    "TableKind",
    "caption_images",
]
