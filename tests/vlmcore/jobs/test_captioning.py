"""Tests of `vlmcore.jobs.captioning`: jobs over small folders, run, stopped and run again."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import attrs
import numpy as np
import pytest
from PIL import Image

from caption_cases import (
    WHAT,
    Given,
    Opened,
    Recorder,
    caption,
    captions,
    draw,
    draw_many,
    item_of_bytes,
    opened_journal,
    pattern,
    plan_of,
    said_of,
)
from vlmcore.errors import (
    ContractError,
    GenerationError,
    JobError,
    JobJournalError,
    JobRunningError,
    JobSinkError,
    JobSourceError,
)
from vlmcore.jobs import (
    CaptionPlan,
    CaptionPrompt,
    CaptionTemplate,
    ExistingCaption,
    FolderImages,
    JobProgress,
    JobReport,
    NameClash,
    PromptTemplate,
    Result,
    Sidecars,
    Table,
    TableKind,
    caption_images,
)
from vlmcore.jobs.captioning import journal_of, state_folder
from vlmcore.jobs.exporting import status_of
from vlmcore.jobs.items import FileContent, Item
from vlmcore.jobs.journal import Outcome
from vlmcore.jobs.sources.lists import ListedImages
from vlmcore.limits import JobLimits
from vlmcore.testing import EchoPredictor, echo
from vlmcore.vlm.prompt import Prompt


def counts(report: JobReport) -> dict[Result, int]:
    return {result: count for result, count in report.counts.items() if count}


def table_of(path: Path) -> Table:
    return Table(path=path, kind=TableKind.of(path))


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# ---- what any rerun does -------------------------------------------------------------------------


def test_a_rerun_asks_nothing_and_changes_nothing(tmp_path: Path) -> None:
    """
    A journal keyed by path, content, prompt and model makes any rerun continue.
    """
    draw_many(tmp_path, 9)
    first = caption(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.txt")}
    model = Recorder()
    again = caption(tmp_path, model)
    assert {Result.CAPTIONED: 9} == counts(first)
    assert {Result.DONE: 9} == counts(again)
    assert [] == model.asked
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.txt")}
    assert f"{said_of(1, (6, 8))}\n" == captions(tmp_path)["00001"]


def test_a_new_image_alone_is_asked_about(tmp_path: Path) -> None:
    """
    Wherever it stands among the others.
    """
    draw_many(tmp_path, 3)
    caption(tmp_path)
    draw(tmp_path / "00000a.png", 77)
    model = Recorder()
    assert {Result.DONE: 3, Result.CAPTIONED: 1} == counts(caption(tmp_path, model))
    assert [said_of(77)] == model.asked


def test_an_image_with_other_bytes_is_asked_about_again(tmp_path: Path) -> None:
    """
    Its caption takes the place of the old one.
    """
    first, _ = draw_many(tmp_path, 2)
    caption(tmp_path)
    draw(first, 77)
    os.utime(first, ns=(1, 1))
    assert {Result.DONE: 1, Result.CAPTIONED: 1} == counts(caption(tmp_path))
    assert f"{said_of(77)}\n" == captions(tmp_path)["00000"]


def test_an_image_that_was_touched_is_read_and_not_asked_about(tmp_path: Path) -> None:
    """
    Its bytes are the same, whatever a clock says: also one that went backwards.
    """
    (path,) = draw_many(tmp_path, 1)
    caption(tmp_path)
    os.utime(path, ns=(0, 0))
    model = Recorder()
    for _ in range(2):
        assert {Result.DONE: 1} == counts(caption(tmp_path, model))
    assert [] == model.asked


def test_another_question_is_asked_and_the_old_one_is_remembered(tmp_path: Path) -> None:
    """
    Who changes it back asks nothing.
    """
    draw_many(tmp_path, 3)
    model = Recorder()
    for question, asked in ((WHAT, 3), ("Who?", 6), (WHAT, 6), ("Who?", 6)):
        caption(tmp_path, model, prompts=question)
        assert asked == len(model.asked)
        assert f"{said_of(0, text=question)}\n" == captions(tmp_path)["00000"]


def test_another_model_is_asked_and_the_answers_of_the_old_one_are_remembered(
    tmp_path: Path,
) -> None:
    """
    As with questions.
    """
    draw_many(tmp_path, 3)
    one, other = Recorder(), Recorder(lambda _prompt: "A dog.", model="other")
    for model in (one, other, one, other):
        caption(tmp_path, model)
    assert (3, 3) == (len(one.asked), len(other.asked))
    assert "A dog.\n" == captions(tmp_path)["00000"]


def test_a_question_that_failed_with_one_model_is_asked_of_another(tmp_path: Path) -> None:
    """
    It was left as if the image could not be read; so it was where the question was another.
    """
    draw_many(tmp_path, 2)
    assert {Result.FAILED: 2} == counts(caption(tmp_path, Recorder(lambda _prompt: " ")))
    assert {Result.FAILED: 2} == counts(caption(tmp_path))
    assert {Result.CAPTIONED: 2} == counts(caption(tmp_path, EchoPredictor(model="other")))
    assert {Result.FAILED: 2} == counts(caption(tmp_path, Recorder(lambda _prompt: " ")))
    assert {Result.CAPTIONED: 2} == counts(caption(tmp_path, prompts="Who?"))


def test_an_image_that_is_done_is_no_failure_any_more(tmp_path: Path) -> None:
    """
    A run with another question failed in between; the table said that it has no caption.
    """
    draw_many(tmp_path, 1)
    table = tmp_path / "all.jsonl"
    fields = {"tables": [table_of(table)], "sidecars": Sidecars()}
    caption(tmp_path, **fields)
    caption(tmp_path, Recorder(lambda _prompt: " "), prompts="Who?", **fields)
    assert {Result.DONE: 1} == counts(caption(tmp_path, **fields))
    (row,) = rows(table)
    assert (said_of(0), None) == (row["caption"], row["error"])


def test_another_template_is_applied_without_asking(tmp_path: Path) -> None:
    """
    The journal holds what the model wrote; prefix and trigger word come after it.
    """
    draw_many(tmp_path, 3)
    caption(tmp_path)
    model = Recorder()
    report = caption(tmp_path, model, template=CaptionTemplate(trigger="ohwx", prefix="A photo: "))
    assert ({Result.DONE: 3}, []) == (counts(report), model.asked)
    assert f"ohwx, A photo: {said_of(0)}\n" == captions(tmp_path)["00000"]


# ---- failures ------------------------------------------------------------------------------------


def test_in_a_batch_the_others_go_on(tmp_path: Path) -> None:
    """
    A file that is no image, a cut one, and one that the model fails over: each is told of.
    """
    paths = draw_many(tmp_path, 20)
    paths[3].write_bytes(b"no image")
    paths[7].write_bytes(paths[7].read_bytes()[:50])

    def answer(prompt: Prompt) -> str:
        if "#00000b" in echo(prompt):
            raise GenerationError("echo", "made to fail")
        return echo(prompt)

    report = caption(tmp_path, Recorder(answer))
    assert {Result.CAPTIONED: 17, Result.FAILED: 3} == counts(report)
    assert ["00003.png", "00007.png", "00011.png"] == sorted(each.key for each in report.failures)
    assert {"made to fail"} == {e.problem for e in report.failures if e.key == "00011.png"}
    assert 17 == len(captions(tmp_path))


def test_failures_are_left_until_they_are_to_be_tried_again(tmp_path: Path) -> None:
    """
    Neither read nor asked about; then both.
    """
    paths = draw_many(tmp_path, 3)
    whole = paths[1].read_bytes()
    paths[1].write_bytes(b"no image")
    fails = Recorder(lambda prompt: " " if "#000002" in echo(prompt) else echo(prompt))
    assert {Result.CAPTIONED: 1, Result.FAILED: 2} == counts(caption(tmp_path, fails))
    left = Recorder()
    report = caption(tmp_path, left)
    assert ({Result.DONE: 1, Result.FAILED: 2}, []) == (counts(report), left.asked)
    assert all(each.problem for each in report.failures)
    again = caption(tmp_path, left, retry_failed=True)
    assert {Result.DONE: 1, Result.CAPTIONED: 1, Result.FAILED: 1} == counts(again)
    paths[1].write_bytes(whole)
    assert {Result.DONE: 2, Result.CAPTIONED: 1} == counts(caption(tmp_path, left))
    assert 2 == len(left.asked)


def test_of_several_questions_those_that_failed_are_asked_again(tmp_path: Path) -> None:
    """
    And only those.
    """
    draw_many(tmp_path, 1)
    prompts = [CaptionPrompt(text="One?", name="one"), CaptionPrompt(text="Two?", name="two")]
    fails = Recorder(lambda prompt: " " if "Two?" in prompt.text else echo(prompt))
    assert {Result.FAILED: 1} == counts(caption(tmp_path, fails, prompts=prompts))
    model = Recorder()
    report = caption(tmp_path, model, prompts=prompts, retry_failed=True)
    assert {Result.CAPTIONED: 1} == counts(report)
    assert [said_of(0, text="Two?")] == model.asked
    assert "One? [image 8x6 #000000]\nTwo? [image 8x6 #000000]\n" == captions(tmp_path)["00000"]


def test_an_image_that_vanishes_before_it_is_read_is_a_failure(tmp_path: Path) -> None:
    """
    And is none once it is back.
    """
    paths = draw_many(tmp_path, 3)
    whole = paths[2].read_bytes()

    def answer(prompt: Prompt) -> str:
        paths[2].unlink(missing_ok=True)
        return echo(prompt)

    limits = JobLimits(max_ahead_images=1, max_readers=1)
    report = caption(tmp_path, Recorder(answer), limits=limits, batch_size=1)
    if report.failed:  # it had not been read yet
        assert "does not exist" in report.failures[0].problem
    paths[2].write_bytes(whole)
    assert 0 == caption(tmp_path).failed
    assert 3 == len(captions(tmp_path))


def test_an_image_that_vanishes_after_it_was_counted_is_a_failure(tmp_path: Path) -> None:
    """
    It stayed waiting for ever, in a run that said it was done; its old row stayed in the table.
    """
    paths = draw_many(tmp_path / "in", 4)
    items = [Item(key=p.name, content=FileContent(p), path=p) for p in paths]
    table = tmp_path / "all.jsonl"
    for gone in ([items[0], items[2]], [items[1], items[3]]):
        source = Given([items, gone], place=tmp_path)
        report = caption(tmp_path, source=source, tables=[table_of(table)])
        assert 4 == report.total
        assert 2 == report.failed
        assert {"is gone: it was there when the images were counted"} == {
            each.problem for each in report.failures
        }
        assert [each in gone for each in items] == [row["error"] is None for row in rows(table)]


def test_an_image_that_comes_while_the_job_runs_is_for_the_next_one(tmp_path: Path) -> None:
    """
    Also one that an earlier run has known; that one ended the job.
    """
    paths = draw_many(tmp_path, 3)
    items = [Item(key=p.name, content=FileContent(p), path=p) for p in paths]
    for total, listings in ((3, [items]), (2, [items[:2], items[:2], items])):
        report = caption(tmp_path, source=Given(listings, place=tmp_path))
        assert total == report.total
    new = [*items, attrs.evolve(items[0], key="new")]
    report = caption(tmp_path, source=Given([items, items, new], place=tmp_path))
    assert {Result.DONE: 3} == counts(report)


def test_one_key_twice_is_one_image(tmp_path: Path) -> None:
    """
    The first; a second one ended the job with a KeyError.
    """
    one, other = draw_many(tmp_path / "in", 2)
    items = [item_of_bytes(key, path) for key, path in (("a", one), ("b", one), ("a", other))]
    for is_quick in (True, False):
        table = tmp_path / f"{is_quick}.jsonl"
        source = Given([items], place=tmp_path, is_quick_to_list=is_quick)
        report = caption(tmp_path, source=source, tables=[table_of(table)])
        assert 2 == report.total
        assert [("a", said_of(0)), ("b", said_of(0))] == [
            (row["key"], row["caption"]) for row in rows(table)
        ]


def test_a_caption_file_that_cannot_be_read_is_a_failure_of_its_image(tmp_path: Path) -> None:
    """
    A folder of that name ended the job.
    """
    draw_many(tmp_path, 2)
    (tmp_path / "00000.txt").mkdir()
    report = caption(tmp_path)
    assert {Result.CAPTIONED: 1, Result.FAILED: 1} == counts(report)
    assert "Is a directory" == report.failures[0].problem
    (tmp_path / "00000.txt").rmdir()
    assert {Result.CAPTIONED: 1, Result.DONE: 1} == counts(caption(tmp_path))


def test_a_caption_file_that_cannot_be_written_is_a_failure_of_its_image(tmp_path: Path) -> None:
    """
    Its name is too long, or its text is no UTF-8: the answer is kept, and it is tried each time.
    """
    long = draw(tmp_path / f"{'x' * 251}.png", 1)
    draw(long.with_suffix(".jpg"), 2)
    draw(tmp_path / "b.png", 3)
    (tmp_path / "b.txt").write_bytes(b"caf\xe9")
    sidecars = Sidecars(existing=ExistingCaption.APPEND, clash=NameClash.DISAMBIGUATE)
    report = caption(tmp_path, sidecars=sidecars)
    problems = sorted(each.problem for each in report.failures)
    assert ["File name too long", "File name too long"] == problems[:2]
    assert "is no UTF-8 text" in problems[2]
    (tmp_path / "b.txt").write_bytes(b"by hand")
    model = Recorder()
    report = caption(tmp_path, model, sidecars=sidecars)
    assert ({Result.DONE: 1, Result.FAILED: 2}, []) == (counts(report), model.asked)
    assert f"by hand\n{said_of(3)}\n" == (tmp_path / "b.txt").read_text()


def test_a_question_that_cannot_be_put_is_a_failure_of_its_image(tmp_path: Path) -> None:
    """
    It says something of the image, of which there is nothing to say: that ended the job.
    """
    draw(tmp_path / "in" / "a.png", 0)
    draw(tmp_path / "b.png", 1)
    prompts = CaptionPrompt(text=PromptTemplate(text="{folder}"))
    report = caption(tmp_path, prompts=prompts)
    assert {Result.CAPTIONED: 1, Result.FAILED: 1} == counts(report)
    assert "cannot be asked: text: " in report.failures[0].problem
    assert {Result.DONE: 1, Result.FAILED: 1} == counts(caption(tmp_path, prompts=prompts))


def test_names_that_are_no_utf8_are_captioned(tmp_path: Path) -> None:
    """
    Their captions are beside them, and the table writes their names out.
    """
    path = draw(tmp_path / "a.png", 1).rename(tmp_path / os.fsdecode(b"\xff.png"))
    inner = tmp_path / os.fsdecode(b"\xfe")
    inner.mkdir()
    shutil.copy(path, inner / os.fsdecode(b"\xfd.png"))
    table = tmp_path / "all.jsonl"
    caption(tmp_path, sidecars=Sidecars(), tables=[table_of(table)])
    assert f"{said_of(1)}\n" == path.with_suffix(".txt").read_text()
    assert [r"\xff.png", r"\xfe/\xfd.png"] == [row["key"] for row in rows(table)]


def test_links_to_images_are_images_and_have_captions_of_their_own(tmp_path: Path) -> None:
    """
    One that leads nowhere is a failure; one to a folder is not followed.
    """
    path = draw(tmp_path / "in" / "a.png", 1)
    folder = tmp_path / "links"
    folder.mkdir()
    (folder / "a.png").symlink_to(path)
    (folder / "b.png").symlink_to("nowhere")
    (folder / "c").symlink_to(folder)
    assert {Result.CAPTIONED: 1, Result.FAILED: 1} == counts(caption(folder))
    assert (True, True) == ((folder / "a.png").is_symlink(), (folder / "a.txt").is_file())
    assert [path] == list(path.parent.iterdir())


# ---- duplicates ----------------------------------------------------------------------------------


def test_images_with_the_same_pixels_are_asked_about_once(tmp_path: Path) -> None:
    """
    Whatever files they are in, in one run and in later ones; each has a caption.
    """
    for name in ("a.png", "b.bmp", "c.png"):
        draw(tmp_path / name, 5)
    model = Recorder()
    report = caption(tmp_path, model, reuse_identical=True)
    assert {Result.CAPTIONED: 1, Result.REUSED: 2} == counts(report)
    draw(tmp_path / "d.tiff", 5)
    report = caption(tmp_path, model, reuse_identical=True)
    assert {Result.DONE: 3, Result.REUSED: 1} == counts(report)
    assert ([said_of(5)], {f"{said_of(5)}\n"}) == (model.asked, set(captions(tmp_path).values()))
    assert {Result.DONE: 4} == counts(caption(tmp_path, model))


def test_pixels_that_were_captioned_without_looking_are_looked_at_then(tmp_path: Path) -> None:
    """
    The first run did not want to know; the second needs it of images that are done.
    """
    draw(tmp_path / "a.png", 5)
    caption(tmp_path)
    draw(tmp_path / "b.png", 5)
    model = Recorder()
    report = caption(tmp_path, model, reuse_identical=True)
    assert ({Result.DONE: 1, Result.REUSED: 1}, []) == (counts(report), model.asked)


def test_where_an_image_fails_those_that_wait_for_its_answer_fail(tmp_path: Path) -> None:
    """
    With its reason; they are tried again with it, and it is asked about once.
    """
    for name in ("a.png", "b.png", "c.png"):
        draw(tmp_path / name, 5)
    report = caption(tmp_path, Recorder(lambda _prompt: " "), reuse_identical=True)
    assert {Result.FAILED: 3} == counts(report)
    assert {"the model wrote nothing"} == {each.problem for each in report.failures}
    model = Recorder()
    report = caption(tmp_path, model, reuse_identical=True, retry_failed=True)
    assert {Result.CAPTIONED: 1, Result.REUSED: 2} == counts(report)
    assert 1 == len(model.asked)


def test_the_same_pixels_are_asked_about_twice_where_the_question_is_another(
    tmp_path: Path,
) -> None:
    """
    It names the folder: the answer to the one is none to the other.
    """
    for name in ("cats/a.png", "cats/b.png", "dogs/a.png"):
        draw(tmp_path / name, 5)
    prompts = CaptionPrompt(text=PromptTemplate(text="Which of the {folder}?"))
    model = Recorder()
    report = caption(tmp_path, model, prompts=prompts, reuse_identical=True)
    assert {Result.CAPTIONED: 2, Result.REUSED: 1} == counts(report)
    draw(tmp_path / "dogs" / "b.png", 5)
    assert (
        1 == caption(tmp_path, model, prompts=prompts, reuse_identical=True).counts[Result.REUSED]
    )
    assert ["Which of the cats?", "Which of the dogs?"] == sorted(
        text.partition(" [")[0] for text in model.asked
    )
    assert captions(tmp_path)["dogs/b"].startswith("Which of the dogs?")


def draw_alike(folder: Path) -> None:
    """Draw a picture, two copies of it in other sizes, and another picture."""
    for name, seed, size in (("a", 1, 64), ("b", 1, 48), ("c", 2, 64), ("d", 1, 96)):
        pattern(seed, size).save(folder / f"{name}.png")


def draw_fields(path: Path, mirrored: int, field: int) -> None:
    """Draw rows that become brighter; in those that are *mirrored* all eight bits are others."""
    row = np.repeat(np.arange(9, dtype=np.uint8) * 20, field)
    rows = np.tile(row, (8 * field, 1))
    rows[: mirrored * field] = row[::-1]
    Image.fromarray(rows).save(path)


def test_an_image_that_looks_like_an_earlier_one_is_skipped(tmp_path: Path) -> None:
    """
    It is counted, and the table says which one it is like; a rerun decides the same.
    """
    draw_alike(tmp_path)
    table = tmp_path / "all.jsonl"
    fields = {"near_duplicates": 6, "tables": [table_of(table)], "sidecars": Sidecars()}
    model = Recorder()
    assert {Result.CAPTIONED: 2, Result.DUPLICATE: 2} == counts(caption(tmp_path, model, **fields))
    assert {Result.DONE: 2, Result.DUPLICATE: 2} == counts(caption(tmp_path, model, **fields))
    assert [None, "a.png", None, "a.png"] == [row["duplicate_of"] for row in rows(table)]
    assert (2, ["a", "c"]) == (len(model.asked), list(captions(tmp_path)))


def test_what_is_alike_is_decided_again_where_less_counts_as_alike(tmp_path: Path) -> None:
    """
    What was skipped and is not like another one any more has its caption; nobody loses one.
    """
    for name, mirrored, field in (("a", 0, 8), ("b", 0, 4), ("c", 2, 8)):
        draw_fields(tmp_path / f"{name}.png", mirrored, field)
    model = Recorder()
    report = caption(tmp_path, model, near_duplicates=20)
    assert {Result.CAPTIONED: 1, Result.DUPLICATE: 2} == counts(report)
    report = caption(tmp_path, model, near_duplicates=6)
    assert {Result.DONE: 1, Result.CAPTIONED: 1, Result.DUPLICATE: 1} == counts(report)
    assert {Result.DONE: 2, Result.CAPTIONED: 1} == counts(caption(tmp_path, model))
    report = caption(tmp_path, model, near_duplicates=20)
    assert ({Result.DONE: 3}, 3) == (counts(report), len(model.asked))


def test_what_was_skipped_has_its_turn_where_the_other_is_gone(tmp_path: Path) -> None:
    """
    Or has other bytes: the next one like it takes its place.
    """
    draw_alike(tmp_path)
    caption(tmp_path, near_duplicates=6)
    (tmp_path / "a.png").unlink()
    report = caption(tmp_path, near_duplicates=6)
    assert {Result.DONE: 1, Result.CAPTIONED: 1, Result.DUPLICATE: 1} == counts(report)
    assert "b" in captions(tmp_path)
    pattern(3).save(tmp_path / "b.png")
    report = caption(tmp_path, near_duplicates=6)
    assert {Result.DONE: 1, Result.CAPTIONED: 2} == counts(report)


# ---- caption files -------------------------------------------------------------------------------


def test_captions_that_are_there_stay_and_their_images_are_not_asked_about(
    tmp_path: Path,
) -> None:
    """
    They are counted as kept.
    """
    draw_many(tmp_path, 2)
    (tmp_path / "00001.txt").write_text("By hand.")
    model = Recorder()
    report = caption(tmp_path, model)
    assert ({Result.CAPTIONED: 1, Result.KEPT: 1}, 1) == (counts(report), len(model.asked))
    assert "By hand." == captions(tmp_path)["00001"]


def test_two_images_that_want_one_file_are_refused_before_anything_is_asked(
    tmp_path: Path,
) -> None:
    """
    And nothing is left of that run: the table of the run before stays as it was.
    """
    draw(tmp_path / "a.png", 1)
    table = tmp_path / "all.jsonl"
    fields = {"tables": [table_of(table)], "sidecars": Sidecars()}
    caption(tmp_path, **fields)
    before = table.read_bytes()
    draw(tmp_path / "a.jpg", 2)
    model = Recorder()
    with pytest.raises(JobSinkError, match=r"a.txt is wanted by a.jpg and a.png"):
        caption(tmp_path, model, prompts="Who?", **fields)
    assert ([], before) == (model.asked, table.read_bytes())
    with opened_journal(tmp_path) as journal:
        assert 1 == status_of(journal, most_failures=1).runs


def test_captions_go_to_a_folder_of_their_own(tmp_path: Path) -> None:
    """
    In the same sub-folders; the images' own folder is not written to, and the journal is with the
    captions.
    """
    draw(tmp_path / "in" / "cats" / "a.png", 1)
    sidecars = Sidecars(folder=tmp_path / "new" / "out", suffix=".caption")
    caption(tmp_path / "in", sidecars=sidecars)
    found = tmp_path / "new" / "out" / "cats" / "a.caption"
    assert f"{said_of(1)}\n" == found.read_text()
    assert ["cats"] == [path.name for path in (tmp_path / "in").iterdir()]
    assert journal_of(tmp_path / "new" / "out").is_file()


def test_a_list_whose_lines_are_no_paths_is_captioned_where_they_are(tmp_path: Path) -> None:
    """
    One bad line refused the whole job.
    """
    draw(tmp_path / "a.png", 1)
    listed = tmp_path / "list.txt"
    listed.write_text("http://host/b.png\n.\na.png\n/\n")
    report = caption(tmp_path, source=ListedImages(listed))
    assert {Result.CAPTIONED: 1, Result.FAILED: 3} == counts(report)
    assert f"{said_of(1)}\n" == (tmp_path / "a.txt").read_text()


# ---- tables --------------------------------------------------------------------------------------


def test_a_job_that_is_stopped_leaves_the_rows_of_the_run_before(tmp_path: Path) -> None:
    """
    Of an archive it meets the images one by one: those that it has not met yet are done, too. They
    were gone from the table until a run came to its end.
    """
    paths = draw_many(tmp_path / "in", 6)
    items = [item_of_bytes(path.name, path) for path in paths]
    table = tmp_path / "all.jsonl"
    source = Given([items], place=tmp_path, is_quick_to_list=False)
    fields = {"source": source, "tables": [table_of(table)]}
    caption(tmp_path, **fields)
    before = table.read_bytes()
    stop = threading.Event()
    stop.set()
    assert caption(tmp_path, stop=stop, **fields).was_stopped
    assert before == table.read_bytes()
    source.listings = [items[:2]]
    caption(tmp_path, **fields)
    assert 2 == len(rows(table))


def test_rows_with_answers_to_another_question_are_not_of_this_job(tmp_path: Path) -> None:
    """
    They have no caption yet: they wait, also for who asks how far it is.
    """
    draw_many(tmp_path, 4)
    table = tmp_path / "all.jsonl"
    caption(tmp_path, tables=[table_of(table)])
    stop = threading.Event()

    def answer(prompt: Prompt) -> str:
        stop.set()
        return echo(prompt)

    report = caption(
        tmp_path,
        Recorder(answer),
        prompts="Who?",
        tables=[table_of(table)],
        batch_size=1,
        stop=stop,
    )
    assert report.was_stopped
    assert [said_of(0, text="Who?")] == [row["caption"] for row in rows(table)]
    with opened_journal(table) as journal:
        status = status_of(journal, most_failures=9)
    assert (1, 3) == (status.counts[Outcome.CAPTIONED], status.counts[Outcome.WAITING])


@pytest.mark.parametrize("name", ["none/all.jsonl", "in"])
def test_a_table_that_cannot_be_written_is_told_of_before_anything_is_asked(
    name: str, tmp_path: Path
) -> None:
    """
    Not after hours: its folder is not there, or it is one.
    """
    draw_many(tmp_path / "in", 1)
    model = Recorder()
    table = Table(path=tmp_path / name, kind=TableKind.JSONL)
    with pytest.raises(JobSinkError):
        caption(tmp_path / "in", model, sidecars=Sidecars(), tables=[table])
    assert [] == model.asked


# ---- one at a time -------------------------------------------------------------------------------


def while_asked(folder: Path, then: Callable[[], object], **fields: object) -> None:
    """Do something while a job is at work."""
    begun, over = threading.Event(), threading.Event()

    def answer(prompt: Prompt) -> str:
        begun.set()
        over.wait(60)
        return echo(prompt)

    thread = threading.Thread(target=caption, args=(folder, Recorder(answer)), kwargs=fields)
    thread.start()
    try:
        assert begun.wait(60)
        then()
    finally:
        over.set()
        thread.join()


def refused(folder: Path, **fields: object) -> Callable[[], None]:
    def run() -> None:
        with pytest.raises(JobRunningError, match="another job is at work here"):
            caption(folder, **fields)

    return run


def test_a_second_job_on_a_folder_is_refused(tmp_path: Path) -> None:
    """
    Also by another name of the folder; nothing is changed by it.
    """
    draw_many(tmp_path / "in", 1)
    (tmp_path / "link").symlink_to("in")
    while_asked(tmp_path / "in", refused(tmp_path / "in"))
    while_asked(tmp_path / "in", refused(tmp_path / "link"), prompts="Who?")
    assert {Result.DONE: 1} == counts(caption(tmp_path / "in"))


@pytest.mark.parametrize(("first", "second"), [("in", "in/a/b"), ("in/a", "in")])
def test_jobs_in_folders_of_folders_are_refused(first: str, second: str, tmp_path: Path) -> None:
    """
    Both would write the same caption files: the second is refused, whichever is outside, and
    however deep the images are.
    """
    draw_many(tmp_path / "in" / "a" / "b", 1)
    while_asked(tmp_path / first, refused(tmp_path / second))


def test_jobs_side_by_side_are_none_of_each_others_business(tmp_path: Path) -> None:
    """
    Nor are two that write elsewhere.
    """
    for name in ("a", "b"):
        draw_many(tmp_path / name, 1)
    out = Sidecars(folder=tmp_path / "out")
    while_asked(tmp_path / "a", lambda: caption(tmp_path / "b"))
    while_asked(tmp_path / "a", lambda: caption(tmp_path / "a", sidecars=out), prompts="Who?")


# ---- stopping ------------------------------------------------------------------------------------


def test_a_job_that_is_stopped_ends_after_the_batch_in_flight(tmp_path: Path) -> None:
    """
    With everything written; what nobody has begun is not, and the next run goes on.
    """
    draw_many(tmp_path, 12)
    stop = threading.Event()

    def answer(prompt: Prompt) -> str:
        stop.set()
        return echo(prompt)

    model = Recorder(answer)
    report = caption(tmp_path, model, batch_size=2, stop=stop)
    assert report.was_stopped
    assert 2 == len(model.asked) == report.counts[Result.CAPTIONED] == len(captions(tmp_path))
    assert {Result.DONE: 2, Result.CAPTIONED: 10} == counts(caption(tmp_path, batch_size=2))


def test_a_job_that_is_stopped_at_its_end_is_done(tmp_path: Path) -> None:
    """
    Nothing is left for the next one.
    """
    draw_many(tmp_path, 1)
    stop = threading.Event()

    def answer(prompt: Prompt) -> str:
        stop.set()
        return echo(prompt)

    assert not caption(tmp_path, Recorder(answer), stop=stop).was_stopped


# ---- what is told --------------------------------------------------------------------------------


@pytest.mark.parametrize("is_quick", [True, False])
def test_the_last_that_is_told_is_what_is_reported(*, is_quick: bool, tmp_path: Path) -> None:
    """
    The total is known at the end, at the latest; it is that of the report.
    """
    paths = draw_many(tmp_path / "in", 7)
    paths[3].write_bytes(b"no image")
    source = Given([[item_of_bytes(p.name, p) for p in paths]], tmp_path, is_quick)
    told: list[JobProgress] = []
    report = caption(
        tmp_path, source=source, tables=[table_of(tmp_path / "t.jsonl")], progress=told.append
    )
    assert (7, 7) == (told[-1].total, report.total)
    assert report.counts == told[-1].counts
    assert ("", 7) == (told[-1].waiting_for, told[-1].done)


def test_an_empty_folder_is_a_job_that_is_done(tmp_path: Path) -> None:
    """
    No model is loaded for it.
    """
    model = Opened(EchoPredictor())
    report = caption(tmp_path, model, tables=[table_of(tmp_path / "all.jsonl")])
    assert (0, False, 0) == (report.total, report.was_stopped, model.opened)
    assert "" == (tmp_path / "all.jsonl").read_text()


def test_captions_that_were_cut_are_counted(tmp_path: Path) -> None:
    """
    They end where `max_new_tokens` ended them.
    """
    draw_many(tmp_path, 2)
    fields = {"max_new_tokens": 2}
    options = attrs.evolve(CaptionPrompt(text="x").options, **fields)
    assert 2 == caption(tmp_path, prompts=CaptionPrompt(text=WHAT, options=options)).cut


# ---- what is refused -----------------------------------------------------------------------------


def test_a_journal_that_is_damaged_is_told_of(tmp_path: Path) -> None:
    """
    It and the captions are left as they are; without it the job begins anew and keeps the captions.
    """
    draw_many(tmp_path, 1)
    caption(tmp_path)
    journal = journal_of(tmp_path)
    journal.write_bytes(b"no journal" * 200)
    with pytest.raises(JobJournalError, match=r"is damaged .*: move it away to begin anew"):
        caption(tmp_path)
    journal.unlink()
    assert {Result.KEPT: 1} == counts(caption(tmp_path))


def test_a_folder_that_is_gone_is_told_of(tmp_path: Path) -> None:
    """
    Where it is to be listed; the table of the run before stays.
    """
    draw_many(tmp_path / "in", 2)
    table = tmp_path / "all.jsonl"
    plan = plan_of(tmp_path / "in", tables=[table_of(table)])
    caption_images(plan, EchoPredictor())
    before = table.read_bytes()
    shutil.rmtree(tmp_path / "in")
    with pytest.raises(JobSourceError, match="does not exist"):
        caption_images(plan, EchoPredictor())
    assert before == table.read_bytes()


def test_the_state_of_a_job_is_beside_what_it_writes(tmp_path: Path) -> None:
    """
    In the folder of the captions, or beside the table.
    """
    assert tmp_path / ".vlmcore" == state_folder(tmp_path)
    assert tmp_path / ".all.jsonl.vlmcore" == state_folder(tmp_path / "all.jsonl")


def test_a_plan_that_writes_nothing_is_refused(tmp_path: Path) -> None:
    """
    Before the model is loaded.
    """
    with pytest.raises(ContractError, match="expected a place for the captions"):
        CaptionPlan(source=FolderImages(tmp_path), prompts=WHAT)


def test_no_caption_file_is_called_like_an_image() -> None:
    """
    It could be written over one that is not in the job.
    """
    with pytest.raises(ContractError, match=r"suffix: got '\.PNG', expected none of an image"):
        Sidecars(suffix=".PNG")


def test_errors_of_jobs_are_errors_of_one_kind() -> None:
    """
    Who catches `JobError` has them all.
    """
    kinds = (JobSourceError, JobSinkError, JobJournalError, JobRunningError)
    assert all(issubclass(kind, JobError) for kind in kinds)
