"""Tests of `vlmcore.jobs._calls`: which calls are made, and which are not any more."""

from __future__ import annotations

import threading

import numpy as np

from caption_cases import Opened, Recorder
from vlmcore.jobs._calls import Calls
from vlmcore.jobs.batching import Question
from vlmcore.testing import echo
from vlmcore.vlm.generation import GenerationOptions
from vlmcore.vlm.prompt import Prompt


def question(key: str) -> Question:
    image = np.zeros((2, 2, 3), np.uint8)
    return Question(
        key=key,
        digest=bytes(32),
        mark="mark",
        prompt=Prompt(text=key, images=(image,)),
        options=GenerationOptions(),
    )


def test_a_batch_that_waits_for_its_turn_is_not_asked_once_the_job_stops() -> None:
    """
    It comes back as it was sent, though nobody took it back: only the batch in flight is answered.
    """
    stop, woken = threading.Event(), threading.Semaphore(0)

    def answer(prompt: Prompt) -> str:
        stop.set()
        return echo(prompt)

    model = Recorder(answer)
    with Calls(
        Opened(model.predictor), in_flight=1, patience_s=1.0, wake=woken.release, stop=stop
    ) as calls:
        calls.send([question("first")])
        calls.send([question("second")])
        for _ in range(2):
            assert woken.acquire(timeout=60)
        back = {asked.question.key: asked.answer is not None for asked in calls.collect()}
    assert {"first": True, "second": False} == back
    assert 1 == len(model.asked)
