"""Captions for many images: the job as a whole, from its lock to its tables."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from vlmcore._whole_files import remove_leftovers, what_failed
from vlmcore.errors import JobError, JobRunningError, JobSinkError, VlmcoreError
from vlmcore.jobs._locking import is_locked, locked
from vlmcore.jobs.bookkeeping import Books
from vlmcore.jobs.clusters import RayCluster
from vlmcore.jobs.engine import Engine
from vlmcore.jobs.exporting import export_table, plan_document
from vlmcore.jobs.items import Item
from vlmcore.jobs.journal import Journal
from vlmcore.jobs.models import JobModel, job_model
from vlmcore.jobs.plans import CaptionPlan
from vlmcore.jobs.ray_engine import RayEngine
from vlmcore.jobs.reports import JobProgress, JobReport, Tally
from vlmcore.jobs.sinks.claims import claim_files
from vlmcore.jobs.sinks.sidecars import SidecarWriter
from vlmcore.jobs.sinks.tables import require_table
from vlmcore.vlm.predictor import Predictor

__all__ = ["caption_images", "journal_of", "state_folder"]

_FOLDER = ".vlmcore"
_JOURNAL, _LOCK = "captions.sqlite", "captions.lock"
_EVERY_S = 0.25  # what comes one by one, as the answers of a server, is kept together


def state_folder(place: Path) -> Path:
    """
    Say where the journal of a job is that writes to *place*.

    Args:
        place: A folder of caption files, or a table.

    Example:
        >>> state_folder(Path("out/captions.jsonl")).as_posix()
        'out/.captions.jsonl.vlmcore'
    """
    return place / _FOLDER if place.is_dir() else place.with_name(f".{place.name}{_FOLDER}")


def journal_of(place: Path) -> Path:
    """Say which file is the journal of a job that writes to *place*."""
    return state_folder(place) / _JOURNAL


def caption_images(
    plan: CaptionPlan,
    model: str | os.PathLike[str] | Predictor | JobModel,
    *,
    progress: Callable[[JobProgress], None] = lambda _progress: None,
    stop: threading.Event | None = None,
    cluster: RayCluster | None = None,
) -> JobReport:
    r"""
    Caption the images of a plan, and go on where an earlier run of it ended.

    An image is done again if its bytes, a prompt or the model are others than before. What fails is
    told of and left, until the plan says to try it again. It may be killed at any time: the next
    run finds every answer that was kept, and asks again at most what was being answered.

    Args:
        plan: What is to be done.
        model: What is asked: a predictor, which stays open, or what `vlmcore.load_predictor` takes,
            which is loaded when the first image has to be asked about.
        progress: Is told how far the run is, in the thread of the caller.
        stop: Once set, the run ends after what is being answered, with everything written.
        cluster: Where images are read and asked about, by *model* as it is named; ``None`` does all
            of it in this process. The journal means the same: either goes on where the other ended.

    Raises:
        ContractError: If a cluster is to ask a predictor, which cannot go to other processes.
        JobRunningError: If another job is at work in the same place.
        JobSourceError: If the images cannot be listed.
        JobSinkError: If captions cannot be written, or two images want the same caption file.
        JobJournalError: If the journal cannot be used.
        ModelError: If the model cannot be loaded, or answers no question any more.
        MissingDependencyError: If a package is not installed that is needed.

    Example:
        >>> import tempfile
        >>> from vlmcore import embedded
        >>> from vlmcore.jobs import CaptionPlan, FolderImages, Sidecars
        >>> from vlmcore.testing import EchoPredictor
        >>> samples = Path(embedded.__file__).parent / "samples"
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     plan = CaptionPlan(
        ...         source=FolderImages(samples),
        ...         prompts="What is this?",
        ...         sidecars=Sidecars(folder=Path(folder)),
        ...     )
        ...     report = caption_images(plan, EchoPredictor())
        ...     text = Path(folder, "scene-1.txt").read_text()
        >>> report.total, text
        (6, 'What is this? [image 140x168 #fbf4ef]\n')
    """
    asked = model if isinstance(model, JobModel) else job_model(model)
    identity = asked.identity
    place = _place(plan)
    for table in plan.tables:
        require_table(table.path, table.kind)
    with _journal_at(place, is_of_files=plan.sidecars is not None) as journal:
        tally = Tally(progress, most_failures=plan.limits.max_failures_told)
        with _books(plan, identity, journal, place=place, tally=tally) as books:
            begin = Engine if cluster is None else functools.partial(RayEngine, cluster=cluster)
            engine = begin(
                plan,
                asked,
                journal,
                books=books,
                tally=tally,
                stop=stop or threading.Event(),
                is_surveyed=plan.source.is_quick_to_list,
            )
            try:
                is_whole = engine.run()
            except VlmcoreError:
                with contextlib.suppress(JobError):
                    _export(plan, journal)
                raise
        _export(plan, journal)
        return tally.report(was_stopped=not is_whole, model=identity)


def _books(
    plan: CaptionPlan, identity: str, journal: Journal, *, place: Path, tally: Tally
) -> Books:
    """Begin a run: count the images, and give each its file. Nothing is kept if that fails."""
    journal.begin(plan_document(plan, identity))
    if plan.source.is_quick_to_list:
        journal.register((position, item.key) for position, item in enumerate(plan.source))
        journal.note_listed()
        tally.total = journal.count()
    sidecars = None
    if plan.sidecars is not None:
        claim_files(journal, plan.sidecars, _guarded(plan, place))
        sidecars = SidecarWriter(journal, plan.sidecars)
        sidecars.recover()
    journal.commit()
    remove_leftovers(str(table.path) for table in plan.tables)
    return Books(plan, identity, journal, sidecars=sidecars, tally=tally, every_s=_EVERY_S)


def _place(plan: CaptionPlan) -> Path:
    """Choose what the journal lies beside: where the captions go."""
    if plan.sidecars is None:
        return plan.tables[0].path
    return plan.source.place if plan.sidecars.folder is None else plan.sidecars.folder


@contextlib.contextmanager
def _journal_at(place: Path, *, is_of_files: bool) -> Iterator[Journal]:
    """Open the journal of the job at *place*, and keep others out of there."""
    try:
        if is_of_files and not place.exists():
            place.mkdir(parents=True)
        folder = state_folder(place)
        folder.mkdir(exist_ok=True)
    except OSError as error:
        problem = f"cannot be written to ({what_failed(error)}): captions can go elsewhere"
        raise JobSinkError(str(place), problem) from error
    with locked(folder / _LOCK, str(place)):
        for above in place.resolve().parents if is_of_files else ():
            _require_no_job(above)
        with Journal(folder / _JOURNAL) as journal:
            yield journal


def _guarded(plan: CaptionPlan, place: Path) -> Iterator[Item]:
    """Give the images, unless another job writes caption files in one of their folders."""
    is_beside = plan.sidecars is not None and plan.sidecars.folder is None
    given: set[Path] = set()
    looked_at = {place.resolve()}
    for item in plan.source:
        folder = None if item.path is None else item.path.parent
        if is_beside and folder is not None and folder not in given:
            given.add(folder)
            real = folder.resolve()
            for above in (real, *real.parents):
                if above in looked_at:
                    break
                looked_at.add(above)
                _require_no_job(above)
        yield item


def _require_no_job(folder: Path) -> None:
    if is_locked(folder / _FOLDER / _LOCK):
        raise JobRunningError(str(folder), "another job is at work here: wait for it, or stop it")


def _export(plan: CaptionPlan, journal: Journal) -> None:
    for table in plan.tables:
        export_table(journal, table.path, table.kind)
