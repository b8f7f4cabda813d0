"""
Lessons for the language part: conversations about scenes, one picture for many questions.

Most lessons branch: the picture comes first, and each question with its answer sees the picture
and itself but no other question, as if it stood alone after the picture. The others are
conversations of several turns, questions before the picture, several pictures, or none.
"""

import dataclasses
import random
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info
from transformers import PreTrainedTokenizerFast

from bench.embedded_model import wordings
from bench.embedded_model.conversations import (
    NO_IMAGE,
    TOPICS,
    Turn,
    caption,
    caption_turn,
    questions,
)
from bench.embedded_model.folder import ASSISTANT, END, IMAGE_BLOCK, SYSTEM, USER
from bench.embedded_model.scenes import TRAINING_MIX, Scene, sample_scene

_IGNORED = -100
_SHARED = 0
_PADDING = -1
_TOPIC_WEIGHTS = {"position": 4.0, "exists": 3.0, "colour": 2.0, "shape": 2.0}
"""How much rather than others a topic is asked: what binds place, colour and shape is hardest."""
_LONGEST_LESSON = 88
"""Turns that would make a lesson longer than so many tokens are left out: padding costs time."""


@dataclasses.dataclass(kw_only=True)
class Lesson:
    """One sequence of tokens: which of them are learnt, and the scenes its pictures show."""

    scenes: Sequence[Scene]
    tokens: list[int] = dataclasses.field(default_factory=list)
    places: list[int] = dataclasses.field(default_factory=list)
    branches: list[int] = dataclasses.field(default_factory=list)
    learnt: list[int] = dataclasses.field(default_factory=list)
    topics: list[str] = dataclasses.field(default_factory=list)

    def append(
        self,
        tokens: Sequence[int],
        *,
        branch: int = _SHARED,
        place: int | None = None,
        answer: int = -1,
    ) -> None:
        """Append *tokens* of *branch*; those of an answer carry the answer's number."""
        start = len(self.tokens) if place is None else place
        self.tokens += tokens
        self.places += range(start, start + len(tokens))
        self.branches += [branch] * len(tokens)
        self.learnt += [answer] * len(tokens)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LessonBatch:
    """
    Lessons as tensors.

    *tokens*, *places*, *answers* are ``[B, T]``; *mask* is ``[B, 1, T, T]``, zero where a token may
    look; *answers* numbers the answers of the batch through, -1 where nothing is learnt.
    """

    tokens: torch.Tensor
    places: torch.Tensor
    mask: torch.Tensor
    answers: torch.Tensor
    topics: list[str]
    kinds: list[str]


class Teacher:
    """Writes lessons about scenes."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, *, questions_a_lesson: int = 4) -> None:
        self._tokenizer = tokenizer
        self._questions_a_lesson = questions_a_lesson
        self._known: dict[str, list[int]] = {}
        self._pad = tokenizer.pad_token_id
        self.image_token = tokenizer.convert_tokens_to_ids("<image>")

    def lesson(self, scene: Scene, more: Sequence[Scene], rng: random.Random) -> Lesson:
        """Return a lesson about *scene*; rarely about *more* scenes too, or about no picture."""
        draw = rng.random()
        if draw < 0.03:
            return self._about_nothing(rng)
        if draw < 0.08:
            return self._about_many([scene, *more[: rng.randint(1, 2)]], rng)
        turns = self._turns(scene, rng)
        if draw < 0.14:
            return self._question_first(scene, rng.choice(turns), rng)
        if draw < 0.24:
            return self._conversation(scene, turns, rng)
        return self.branching(scene, turns, rng)

    def branching(self, scene: Scene, turns: Sequence[Turn], rng: random.Random) -> Lesson:
        """Return a lesson whose turns do not see each other."""
        lesson = Lesson(scenes=[scene])
        lesson.append(self._encode(self._system(rng) + USER + IMAGE_BLOCK))
        start = len(lesson.tokens)
        for branch, turn in enumerate(turns, start=1):
            asked = self._encode(turn.question) + self._encode(END + ASSISTANT)
            answer = self._encode(turn.answer + END)
            if branch > 1 and len(lesson.tokens) + len(asked) + len(answer) > _LONGEST_LESSON:
                continue
            lesson.append(asked, branch=branch, place=start)
            lesson.append(
                answer, branch=branch, place=start + len(asked), answer=len(lesson.topics)
            )
            lesson.topics.append(turn.topic)
        return lesson

    def batch(self, lessons: Sequence[Lesson]) -> LessonBatch:
        """Return *lessons* as tensors, padded on the right."""
        shape = (len(lessons), max(len(lesson.tokens) for lesson in lessons))
        tokens = np.full(shape, self._pad)
        places, answers = np.zeros(shape, dtype=np.int64), np.full(shape, -1)
        branches = np.full(shape, _PADDING)
        topics: list[str] = []
        kinds: list[str] = []
        for row, lesson in enumerate(lessons):
            length = len(lesson.tokens)
            tokens[row, :length], places[row, :length] = lesson.tokens, lesson.places
            branches[row, :length] = lesson.branches
            numbers = np.array(lesson.learnt)
            answers[row, :length] = np.where(numbers >= 0, numbers + len(topics), -1)
            topics += lesson.topics
            kinds += [lesson.scenes[0].kind if lesson.scenes else "none"] * len(lesson.topics)
        same = (branches[:, None, :] == branches[:, :, None]) | (branches[:, None, :] == _SHARED)
        may_look = same & np.tri(shape[1], dtype=bool)
        mask = torch.zeros((shape[0], 1, shape[1], shape[1])).masked_fill_(
            ~torch.from_numpy(may_look)[:, None], torch.finfo(torch.float32).min
        )
        return LessonBatch(
            tokens=torch.from_numpy(tokens),
            places=torch.from_numpy(places),
            mask=mask,
            answers=torch.from_numpy(answers),
            topics=topics,
            kinds=kinds,
        )

    def _turns(self, scene: Scene, rng: random.Random) -> list[Turn]:
        order = sorted(
            TOPICS, key=lambda topic: -(rng.random() ** (1 / _TOPIC_WEIGHTS.get(topic, 1)))
        )
        asked = questions(scene, rng, topics=order)[: self._questions_a_lesson]
        return [caption_turn(scene, rng), *asked]

    def _question_first(self, scene: Scene, turn: Turn, rng: random.Random) -> Lesson:
        lesson = Lesson(scenes=[scene])
        lesson.append(self._encode(self._system(rng) + USER) + self._encode(turn.question))
        lesson.append(self._encode(IMAGE_BLOCK + END + ASSISTANT))
        lesson.append(self._encode(turn.answer + END), answer=0)
        lesson.topics.append(turn.topic)
        return lesson

    def _conversation(self, scene: Scene, turns: Sequence[Turn], rng: random.Random) -> Lesson:
        lesson = Lesson(scenes=[scene])
        lesson.append(self._encode(self._system(rng) + USER + IMAGE_BLOCK))
        for number, turn in enumerate(rng.sample(turns, len(turns))[:3]):
            opening = [] if number == 0 else self._encode(USER)
            lesson.append(opening + self._encode(turn.question) + self._encode(END + ASSISTANT))
            lesson.append(self._encode(turn.answer + END), answer=number)
            lesson.topics.append("later turn" if number else turn.topic)
        return lesson

    def _about_many(self, scenes: Sequence[Scene], rng: random.Random) -> Lesson:
        answer = " ".join(
            f"Image {number}: {caption(scene)}" for number, scene in enumerate(scenes, start=1)
        )
        lesson = Lesson(scenes=scenes)
        lesson.append(
            self._encode(self._system(rng) + USER) + self._encode(IMAGE_BLOCK) * len(scenes)
        )
        question = caption_turn(scenes[0], rng).question
        lesson.append(self._encode(question) + self._encode(END + ASSISTANT))
        lesson.append(self._encode(answer + END), answer=0)
        lesson.topics.append("many pictures")
        return lesson

    def _about_nothing(self, rng: random.Random) -> Lesson:
        scene = sample_scene(rng.randrange(1 << 30))
        lesson = Lesson(scenes=[])
        question = rng.choice(self._turns(scene, rng)).question
        lesson.append(
            self._encode(self._system(rng) + USER)
            + self._encode(question)
            + self._encode(END + ASSISTANT)
        )
        lesson.append(self._encode(NO_IMAGE + END), answer=0)
        lesson.topics.append("no picture")
        return lesson

    def _system(self, rng: random.Random) -> str:
        return SYSTEM + rng.choice(wordings.SYSTEM_PROMPTS) + END if rng.random() < 0.25 else ""

    def _encode(self, text: str) -> list[int]:
        tokens = self._known.get(text)
        if tokens is None:
            tokens = self._tokenizer.encode(text, add_special_tokens=False)
            if len(self._known) < 100_000:
                self._known[text] = tokens
        return tokens


class Lessons(IterableDataset[tuple[list[int], LessonBatch]]):
    """Batches of lessons: the seeds of the pictures in order, and the lessons about them."""

    def __init__(
        self,
        teacher: Teacher,
        *,
        first_seed: int,
        batch_size: int,
        mix: Mapping[str, float] = TRAINING_MIX,
    ) -> None:
        self._teacher, self._first_seed, self._batch_size, self._mix = (
            teacher,
            first_seed,
            batch_size,
            mix,
        )

    def __iter__(self) -> Iterator[tuple[list[int], LessonBatch]]:
        """Yield batches for ever."""
        worker = get_worker_info()
        index, stride = (worker.id, worker.num_workers) if worker else (0, 1)
        while True:
            start = self._first_seed + index * self._batch_size
            scenes = [
                sample_scene(start + offset, mix=self._mix) for offset in range(self._batch_size)
            ]
            rng = random.Random(start)
            lessons = [self._teacher.lesson(scene, rng.sample(scenes, 3), rng) for scene in scenes]
            shown = [scene.seed for lesson in lessons for scene in lesson.scenes]
            yield shown, self._teacher.batch(lessons)
            index += stride
