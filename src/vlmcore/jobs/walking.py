"""The images of a run, one after the other, each with what is known of it."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from vlmcore.jobs.bookkeeping import Books
from vlmcore.jobs.items import Item
from vlmcore.jobs.journal import Journal, Known, Outcome
from vlmcore.jobs.plans import CaptionPlan
from vlmcore.jobs.reading import Seen
from vlmcore.jobs.reports import Tally

__all__ = ["Begun", "Walk"]


@attrs.define(kw_only=True, eq=False)
class Begun:
    """
    An image whose turn has come.

    Attributes:
        item: The image.
        known: What the journal knows of it.
        seen: What was seen of it; ``None`` if it has to be read.
        done: The digest of bytes of which all is known: they need not be decoded.
        was_read: Whether it was seen now, and not in an earlier run.
    """

    item: Item
    known: Known
    seen: Seen | None = None
    done: bytes | None = None
    was_read: bool = False


class Walk:
    """
    Goes through the images of a plan once, and concludes those that need no look.

    Args:
        plan: What is to be done.
        journal: The journal, with a run begun.
        books: Keeps journal and caption files.
        tally: Is told how many images there are, once that is known.
        is_surveyed: Whether the journal knows that already.
    """

    def __init__(
        self, plan: CaptionPlan, journal: Journal, *, books: Books, tally: Tally, is_surveyed: bool
    ) -> None:
        self._plan = plan
        self._journal = journal
        self._books = books
        self._tally = tally
        self._is_surveyed = is_surveyed
        self._next_position = 0

    def __iter__(self) -> Iterator[Begun | None]:
        """Give each image, in the order of the source; ``None`` for one with nothing to do."""
        for position, item in enumerate(self._plan.source):
            yield self._begun(position, item)
        # All were given: those are gone that were counted, and were not given.
        self._pass_over(self._next_position, None)
        if not self._is_surveyed:
            self._journal.note_listed()
            self._tally.total = self._journal.count()

    def _begun(self, position: int, item: Item) -> Begun | None:
        if not self._is_surveyed:
            self._journal.register([(position, item.key)])
        known = self._journal.known(item.key)
        if known is None or known.position < self._next_position:
            return None  # it came after the images were counted, or has the key of one before
        self._pass_over(self._next_position, known.position)
        self._next_position = known.position + 1
        verdict = self._books.stays(item.key)
        if verdict is not None:
            self._books.conclude(item.key, verdict)
            return None
        begun = Begun(item=item, known=known)
        if self._books.lacks_looks(known):
            return begun
        verdict = self._books.verdict(item.key, known, known.digest)
        stamp = item.content.stamp()
        is_same = stamp is not None and stamp == known.stamp
        was_skipped = self._plan.near_duplicates is not None and known.outcome is Outcome.DUPLICATE
        if is_same and (verdict is not None or was_skipped):
            begun.seen = Seen(item=item, stamp=stamp, digest=known.digest)
        elif verdict is not None:
            begun.done = known.digest
        return begun

    def _pass_over(self, first: int, end: int | None) -> None:
        if self._is_surveyed and first != end:
            self._books.missing(self._journal.keys_between(first, end))
