"""Steps of calls, done on sockets that block."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Generator
from typing import Any, TypeVar

from vlmcore._net.deadline import Deadline
from vlmcore._net.steps import Dial, Receive, Send, Steps, Wait
from vlmcore._net.tcp import TcpConnection

__all__ = ["BlockingConnection"]

_News = TypeVar("_News")
_Result = TypeVar("_Result")


class BlockingConnection:
    """
    Does what calls say, one call at a time. Only `cut` may be called from another thread.

    Args:
        tls: How servers prove who they are, where that is asked for.
    """

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self._tls = tls
        self._tcp = TcpConnection()
        self._cut = threading.Event()
        self._unsent: list[memoryview] = []
        self._early: bytes | None = None  # what came before all was sent
        self._is_stuck = False  # some cannot be sent
        self.is_asked = False

    @property
    def is_cut(self) -> bool:
        """Whether `cut` ended it."""
        return self._cut.is_set()

    def cut(self) -> None:
        """End the call that is under way, and all others, from any thread."""
        self._cut.set()
        self._tcp.cut()

    def close(self) -> None:
        """Give the socket back."""
        self._tcp.close()

    def arrived(self) -> bytes | None:
        """
        Take what came since the last call; ``None`` if nothing did.

        Raises:
            OSError: If no other call may use the connection.
        """
        if self.is_cut or self._is_stuck or self._unsent:
            raise ConnectionAbortedError
        return self._tcp.arrived()

    def run(
        self, steps: Steps[_News, _Result], deadline: Deadline
    ) -> Generator[_News, None, _Result]:
        """
        Do what a call says, and give its news.

        Raises:
            Exception: What the call raises. It is told of an `OSError`, if the connection is lost
                or something is not done until the deadline.
        """
        self.is_asked = False
        came: bytes | None = None
        lost: OSError | None = None
        while True:
            try:
                step = steps.send(came) if lost is None else steps.throw(lost)
            except StopIteration as end:
                result: _Result = end.value
                return result
            finally:
                came = lost = None  # no traceback has in it what came
            try:
                match step:
                    case Dial():
                        self._dial(step, deadline)
                    case Send():
                        self._send(step, deadline)
                    case Receive():
                        came = self._receive(deadline.within(step.longest_s))
                    case Wait():
                        self._wait(step.seconds, deadline)
                    case _:
                        yield step
            except OSError as error:
                lost = error

    def done(self, steps: Steps[Any, _Result], deadline: Deadline) -> _Result:
        """
        Do what a call says, and return what comes of it, without its news.

        Raises:
            Exception: As `run`.
        """
        results: list[_Result] = []

        def run() -> Generator[Any, None, None]:
            results.append((yield from self.run(steps, deadline)))

        for _ in run():
            pass
        return results[0]

    def _dial(self, dial: Dial, deadline: Deadline) -> None:
        self._tcp.close()
        self._tcp = TcpConnection()
        self._unsent, self._early, self._is_stuck = [], None, False
        if self.is_cut:  # before there was something to cut
            self._tcp.cut()
        tls = self._tls if dial.endpoint.scheme == "https" else None
        self._tcp.open(
            dial.endpoint,
            tls,
            deadline,
            only_public=dial.only_public,
            needs_end=dial.needs_end,
        )

    def _send(self, send: Send, deadline: Deadline) -> None:
        """Send all, unless something comes before that: then the rest, where more is waited for."""
        self.is_asked = True
        if self._is_stuck or self._unsent:  # the rest of another request would have to go first
            raise ConnectionAbortedError
        self._unsent = [memoryview(part) for part in send.parts if part]
        self._early = self._sent_or_came(deadline)

    def _receive(self, deadline: Deadline) -> bytes:
        came, self._early = self._early, None
        if came is None:
            came = self._sent_or_came(deadline)
        return self._tcp.receive(deadline) if came is None else came

    def _sent_or_came(self, deadline: Deadline) -> bytes | None:
        """Send until all is sent, or something comes: who has answered may read no more."""
        try:
            while self._unsent:
                sent = self._tcp.send_some(self._unsent[0], deadline)
                self._unsent[0] = self._unsent[0][sent:]
                if not self._unsent[0]:
                    del self._unsent[0]
                elif not sent and (came := self._tcp.arrived()) is not None:
                    return came
        except (ConnectionError, ssl.SSLError):  # the second may say that the peer hung up, too
            if self.is_cut:
                raise
            self._unsent, self._is_stuck = [], True
            # What the peer said before tells more.
        return None

    def _wait(self, seconds: float, deadline: Deadline) -> None:
        self.is_asked = False
        if self._cut.wait(min(seconds, deadline.left_s())):
            raise ConnectionAbortedError
        deadline.left_s()
