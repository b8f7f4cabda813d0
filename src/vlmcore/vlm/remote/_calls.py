"""What a call does, step by step: ask, ask again where that may help, and read the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import attrs

from vlmcore._net.deadline import Deadline
from vlmcore._net.http_parts import BrokenHttpError, HungUpError
from vlmcore._net.steps import Dial, Receive, Send, Steps, Wait
from vlmcore.contracts.json_text import write_json
from vlmcore.errors import LimitExceededError
from vlmcore.limits import DocumentLimits
from vlmcore.vlm.generation import CancelToken, Generation, GenerationOptions
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.remote._codecs import Question
from vlmcore.vlm.remote._draft import Draft
from vlmcore.vlm.remote._reading import AnswerReader, RefusedError, require_answered
from vlmcore.vlm.remote._terms import Terms
from vlmcore.vlm.remote.pictures import pictures_of

if TYPE_CHECKING:
    from vlmcore._net.http_exchange import HttpExchange

__all__ = ["Asked", "Talk", "answer_steps", "any_of", "asked"]

_LAST_WORDS_S = 5.0  # for what may come behind the end of an answer: the usage, and the last event


@attrs.define
class Talk:
    """
    What is known of one connection, without its socket.

    Attributes:
        http: What was said on it.
        is_heard: Whether the last answer is whole, so that at most its end is still to come.
    """

    http: HttpExchange | None = None
    is_heard: bool = False

    @property
    def is_open(self) -> bool:
        """Whether another request may be sent on it."""
        return self.http is not None and self.http.is_reusable

    @property
    def may_be_kept(self) -> bool:
        """Whether another request may be sent on it, now or after the end of the last answer."""
        return self.is_heard or self.is_open

    def settle(self, data: bytes) -> None:
        """Take the end of an answer whose text was whole before."""
        try:
            for _ in self.http.feed(data) if self.http is not None else ():
                pass
        except BrokenHttpError:
            self.http = None


@attrs.frozen(kw_only=True, repr=False)
class Asked:
    """
    One call.

    Attributes:
        question: What is asked.
        deadline: When the call has to be over.
        is_cancelled: Says whether the caller ended it.
        began_s: When it began.
    """

    question: Question
    deadline: Deadline
    is_cancelled: Callable[[], bool]
    began_s: float

    def new_draft(self, terms: Terms) -> Draft:
        """Begin an answer."""
        return Draft(self.question.options, clock=terms.clock, began_s=self.began_s)


def any_of(tokens: Sequence[CancelToken]) -> Callable[[], bool]:
    """Say whether one of *tokens* was used, when it is called."""
    return lambda: any(token.cancelled for token in tokens)


def asked(
    terms: Terms,
    prompt: Prompt,
    options: GenerationOptions,
    *,
    streams: bool,
    deadline: Deadline,
    is_cancelled: Callable[[], bool],
    began_s: float,
) -> Asked:
    """
    Put a call together: pictures are encoded here.

    Raises:
        LimitExceededError: If there are too many pictures.
        MediaLimitError: If one is too large.
    """
    question = Question(
        model=terms.model,
        prompt=prompt,
        options=options,
        pictures=tuple(pictures_of(prompt, terms.pictures)),
        streams=streams,
        effort=terms.options.reasoning_effort,
        more=terms.more,
        left_out=frozenset(),
    )
    return Asked(question=question, deadline=deadline, is_cancelled=is_cancelled, began_s=began_s)


def answer_steps(terms: Terms, call: Asked, talk: Talk) -> Steps[str, Generation]:
    """Ask until there is an answer, as often as that may help; give its pieces as they come."""
    attempts = 0
    while True:
        attempts += 1
        draft = call.new_draft(terms)
        left_out = frozenset(terms.left_out)
        try:
            yield from _attempt(terms, call, talk, draft, left_out)
            break
        except RefusedError as error:
            problem: Exception = error
            if _learns(terms, call, error, draft, left_out):
                attempts -= 1
                continue
            wait_s = _wait_s(terms, call, error, draft, attempts)
        except Exception as error:  # noqa: BLE001 - all of them: this is the boundary
            problem, wait_s = error, None
        if wait_s is not None:
            with suppress(OSError):  # it was cancelled, or there is no time left
                yield Wait(wait_s)
                continue
        if call.is_cancelled():
            break
        # Under the same name: no frame of the traceback holds the words of the server.
        problem = terms.translated(problem, is_asked=draft.is_asked, text=draft.text)
        raise problem
    yield from draft.finish(cancelled=call.is_cancelled())
    return draft.generation(attempts=attempts, left_out=tuple(sorted(left_out)))


def _attempt(
    terms: Terms, call: Asked, talk: Talk, draft: Draft, left_out: frozenset[str]
) -> Steps[str, None]:
    """Ask once; a kept connection that the server had given up is made anew."""
    if call.is_cancelled():
        return
    body = _body(terms, call, left_out)
    while True:
        was_open = talk.is_open
        try:
            yield from _exchanged(terms, call, talk, draft, body)
        except (HungUpError, ConnectionError, TimeoutError) as error:
            if draft.is_told:
                break
            is_stale = was_open and not draft.has_head and not isinstance(error, TimeoutError)
            if call.is_cancelled() or not is_stale:
                raise
            talk.http = None
        else:
            break
    require_answered(draft)


def _exchanged(
    terms: Terms, call: Asked, talk: Talk, draft: Draft, body: bytes
) -> Steps[str, None]:
    server = terms.server
    if not talk.is_open:
        talk.http = terms.new_exchange()
        yield Dial(endpoint=server.endpoint, only_public=server.only_public)
    http = talk.http
    assert http is not None
    talk.is_heard = False
    draft.sent()
    yield Send(
        http.request(
            host=server.endpoint.host_header,
            method="POST",
            target=f"{server.base}{terms.codec.path}",
            headers=terms.headers(),
            body=body,
        )
    )
    reader = AnswerReader(terms.codec, draft, terms.limits)
    ending: Deadline | None = None
    while not (http.is_done or reader.is_over):
        if draft.is_told and ending is None:
            ending = Deadline(_LAST_WORDS_S)
        data = yield Receive(None if ending is None else ending.left_s())
        assert data is not None
        for part in http.feed(data):
            draft.has_head = True
            for piece in reader.take(part):
                yield piece
                if call.is_cancelled():
                    raise ConnectionAbortedError
    if not draft.is_over:
        yield from reader.finish()
    talk.is_heard = draft.is_whole


def _body(terms: Terms, call: Asked, left_out: frozenset[str]) -> bytes:
    question = attrs.evolve(call.question, left_out=left_out)
    document: Any = terms.codec.request(question)
    most = terms.max_request_bytes
    try:
        limits = DocumentLimits(max_document_bytes=most)
        return write_json(document, indent=None, limits=limits).encode()
    except LimitExceededError as error:
        raise LimitExceededError("max_request_bytes", error.actual, most) from None


def _learns(
    terms: Terms, call: Asked, error: RefusedError, draft: Draft, left_out: frozenset[str]
) -> bool:
    """Note which field of the request is not taken, if one may go; then it is asked at once."""
    if draft.is_begun:
        return False
    question = attrs.evolve(call.question, left_out=left_out)
    refused = [
        field
        for field in terms.codec.replaceable(question)
        if field not in left_out and error.refusal.names(field)
    ]
    spare = terms.codec.done_here
    if spare and call.question.options.stop and spare not in left_out and error.refusal.is_a_bug:
        refused.append(spare)
    terms.left_out.update(refused)
    return bool(refused)


def _wait_s(
    terms: Terms, call: Asked, error: RefusedError, draft: Draft, attempts: int
) -> float | None:
    """Say how long to wait before the server is asked again; ``None`` if it is no use."""
    refusal = error.refusal
    if draft.is_begun or not refusal.may_pass or attempts > terms.retries.times:
        return None
    wait_s = terms.retries.wait_s(attempts, refusal.retry_after_s)
    return wait_s if wait_s < call.deadline.rest_s else None
