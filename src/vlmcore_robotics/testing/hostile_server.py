"""A server that misbehaves in a way that is chosen, for those who write clients."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from types import TracebackType
from typing import Any, final

import attrs
import numpy as np

from vlmcore._arrays import Float64Array, require_count, require_finite_between, require_member
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.errors import ContractError, EndpointError, VlmcoreError
from vlmcore_robotics.testing._misdeeds import MISDEEDS, Exchange, Misdeed, Point
from vlmcore_robotics.testing._streams import Stream
from vlmcore_robotics.testing._voices import (
    Asked,
    GrootVoice,
    HttpVoice,
    OpenPIVoice,
    Voice,
    info_of,
)
from vlmcore_robotics.testing.behaviours import Behaviour, behaviours_of
from vlmcore_robotics.testing.protocols import PolicyProtocol
from vlmcore_robotics.wire.groot_layout import GrootLayout

__all__ = ["HostileServer"]

_STEP = 0.001
_RESTARTS_AFTER = 2  # answers
_PATIENCE_S = 5.0


@final
class HostileServer:
    """
    A policy server on a real socket of this machine that does one thing wrong, on purpose.

    All else is right: it greets, says what it is, and answers. Every number of its answer to the
    *n*-th question is ``n / 1000``, so a test can tell a late answer from the one that it waits
    for. It serves while the block runs, on threads of its own, any number of clients.

    Args:
        protocol: What it speaks.
        behaviour: What it does wrong.
        embodiment: The robot that its policy is for.
        layout: The keys of its policy; for GR00T only, which has no answer without.
        horizon: How many steps an answer has.
        late_s: How late it answers where it is `Behaviour.LATE`, 0 to 600 seconds.
        port: 0 to 65535; at 0 one that is free is taken.
        tls: Its certificate; not for GR00T, which knows none.

    Raises:
        ContractError: If an argument is not as described, or its protocol has no such behaviour.
        EndpointError: If it cannot listen there.

    Example:
        >>> from vlmcore.contracts.presets import find_embodiment
        >>> from vlmcore.errors import PolicyProtocolError
        >>> from vlmcore.testing import example_observation
        >>> from vlmcore_robotics.clients import WebSocketPolicy
        >>> from vlmcore_robotics.wire.layouts import aloha_layout
        >>> robot = find_embodiment("aloha_bimanual_template")
        >>> bomb = HostileServer(PolicyProtocol.OPENPI, Behaviour.COUNTLESS, embodiment=robot)
        >>> with bomb, WebSocketPolicy(
        ...     bomb.url, embodiment=robot, layout=aloha_layout(), name="bomb"
        ... ) as policy:
        ...     try:
        ...         policy.infer(example_observation(robot))
        ...     except PolicyProtocolError as error:
        ...         print(error)
        bomb: max_entries: got 4294967295, limit is 65536
    """

    def __init__(
        self,
        protocol: PolicyProtocol,
        behaviour: Behaviour,
        *,
        embodiment: Embodiment,
        layout: GrootLayout | None = None,
        horizon: int = 2,
        late_s: float = 2.0,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        require_member(PolicyProtocol, protocol=protocol)
        robot: Any = embodiment
        if not isinstance(robot, Embodiment):
            kind = type(robot).__name__
            raise ContractError("embodiment", f"got {kind}, expected an Embodiment")
        is_groot = protocol is PolicyProtocol.GROOT
        if is_groot != isinstance(layout, GrootLayout):
            expected = "expected a GrootLayout for GR00T, and None for all else"
            raise ContractError("layout", f"got {type(layout).__name__}, {expected}")
        if is_groot and tls is not None:
            raise ContractError("tls", "got one, expected none: GR00T has no encryption")
        require_count(horizon=horizon)
        require_finite_between(0.0, 600.0, late_s=late_s)
        self._protocol = protocol
        self._behaviour = self._checked(behaviour)
        self._info = info_of(embodiment, horizon)
        self._layout = layout
        self._late_s = late_s
        self._port = port
        self._tls = tls
        self._asked = 0
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._listener: socket.socket | None = None
        self._streams: set[Stream] = set()
        self._threads: list[threading.Thread] = []

    @property
    def url(self) -> str:
        """Where a client reaches it; with the port that was taken, once it listens."""
        scheme = self._protocol.schemes[0 if self._tls is None else -1]
        return f"{scheme}://127.0.0.1:{self._port}"

    @property
    def asked(self) -> int:
        """How many questions for actions came until now."""
        return self._asked

    def become(self, behaviour: Behaviour) -> None:
        """
        Behave otherwise from now on; connections stay as they are.

        Raises:
            ContractError: If its protocol has no such behaviour.
        """
        self._behaviour = self._checked(behaviour)

    def __enter__(self) -> HostileServer:
        self._stopping.clear()
        try:
            self._listen()
        except OSError as error:
            raise EndpointError(self.url, f"cannot listen there: {error.strerror}") from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._hush()
        for thread in self._threads:
            thread.join(_PATIENCE_S)
        self._threads.clear()

    def _checked(self, behaviour: Behaviour) -> Behaviour:
        require_member(Behaviour, behaviour=behaviour)
        if behaviour not in behaviours_of(self._protocol):
            raise ContractError(
                "behaviour",
                f"got {behaviour.name}, expected one that {self._protocol.value} has",
            )
        return behaviour

    def _listen(self) -> None:
        listener = socket.socket()
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", self._port))
            listener.listen()
        except BaseException:
            listener.close()
            raise
        self._port = listener.getsockname()[1]
        self._listener = listener
        self._start(self._accept, listener)

    def _hush(self) -> None:
        """Stop listening, and hang up on everybody."""
        if self._listener is not None:
            with contextlib.suppress(OSError):  # it wakes the thread that accepts
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        with self._lock:
            for stream in self._streams:
                stream.cut()

    def _restart(self) -> None:
        self._behaviour = Behaviour.GOOD
        self._hush()
        if not self._stopping.is_set():
            self._listen()

    def _start(self, run: Any, argument: Any) -> None:
        thread = threading.Thread(target=run, args=(argument,), name="hostile", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        """Serve one client, until one of both has enough."""
        # VlmcoreError and ValueError: what the client said was none of the protocol.
        with connection, contextlib.suppress(OSError, EOFError, VlmcoreError, ValueError):
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            stream = Stream(connection)
            with self._lock:
                self._streams.add(stream)
            try:
                self._converse(stream)
            finally:
                with self._lock:
                    self._streams.discard(stream)
                stream.cut()
                stream.close()

    def _converse(self, stream: Stream) -> None:
        exchange = Exchange(
            voice=self._voice(),
            stream=stream,
            call=None,
            greeting=b"",
            values=np.empty((0, 0)),
            count=self._count,
            late_s=self._late_s,
            stopping=self._stopping,
            restart=self._restart,
        )
        misdeed = self._misdeed(Point.CONNECTED)
        if misdeed is not None and not misdeed(exchange):
            return
        exchange = attrs.evolve(exchange, greeting=exchange.voice.greet(stream))
        misdeed = self._misdeed(Point.HANDSHAKE)
        if misdeed is not None and not misdeed(exchange):
            return
        stream.send(exchange.greeting)
        exchange.voice.greeted(stream)
        while self._answer(exchange):
            pass

    def _answer(self, exchange: Exchange) -> bool:
        voice = exchange.voice
        asked, call = voice.hear(exchange.stream)
        exchange = attrs.evolve(exchange, call=call)
        if asked is Asked.OTHER:
            exchange.send_body(voice.other(call))
            return True
        if asked is Asked.METADATA:
            misdeed = self._misdeed(Point.METADATA)
            if misdeed is not None:
                return misdeed(exchange)
            exchange.stream.send(exchange.metadata())
            return True
        return self._act(exchange)

    def _act(self, exchange: Exchange) -> bool:
        exchange = attrs.evolve(exchange, values=self._count())
        misdeed = self._misdeed(Point.ACTIONS)
        if misdeed is not None:
            return misdeed(exchange)
        exchange.stream.send(exchange.answer())
        return True

    def _count(self) -> Float64Array:
        """Count a question, and make the actions that tell it from the others."""
        with self._lock:
            self._asked += 1
            number = self._asked
        names, steps = self._info.action_names or (), self._info.horizon or 1
        return np.full((steps, len(names)), number * _STEP)

    def _misdeed(self, point: Point) -> Misdeed | None:
        """Choose what is done wrong at *point*, if anything."""
        behaviour = self._behaviour
        if behaviour is Behaviour.GOOD or MISDEEDS[behaviour][0] is not point:
            return None
        if behaviour is Behaviour.RESTARTS and self._asked < _RESTARTS_AFTER:
            return None
        if behaviour is Behaviour.FAILS_ONCE:
            self._behaviour = Behaviour.GOOD
        return MISDEEDS[behaviour][1]

    def _voice(self) -> Voice[Any]:
        match self._protocol:
            case PolicyProtocol.OPENPI:
                return OpenPIVoice(self._info)
            case PolicyProtocol.HTTP:
                return HttpVoice(self._info)
            case PolicyProtocol.GROOT:
                assert self._layout is not None
                return GrootVoice(self._info, self._layout)
