"""Serves a policy over HTTP, in the protocol ``comfyui-vla-http-v1``."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import TYPE_CHECKING, final

from vlmcore._arrays import require_count, require_finite_between
from vlmcore._optional import optional_dependency
from vlmcore.limits import HttpLimits
from vlmcore.secrets import Secret
from vlmcore_robotics.servers._admission import Admission
from vlmcore_robotics.servers._http_answers import HttpAnswers
from vlmcore_robotics.servers._message_threads import message_threads
from vlmcore_robotics.servers._server import Server
from vlmcore_robotics.servers._terms import Address, action_names_of, require_tls
from vlmcore_robotics.servers.runtime import PolicyRuntime
from vlmcore_robotics.wire.http_v1 import HttpCodec
from vlmcore_robotics.wire.ports import HTTP_PORT

if TYPE_CHECKING:
    from vlmcore_robotics.servers._uvicorn_listener import Listener

__all__ = ["HttpPolicyServer"]


@final
class HttpPolicyServer(Server):
    """
    Serves the policy of a runtime over HTTP, in the protocol ``comfyui-vla-http-v1``.

    ``POST /v1/infer`` asks, ``POST /v1/reset`` ends an episode, ``GET /v1/metadata`` says what the
    policy is, and ``GET /healthz`` whether it can be asked.
    Connections are kept, and served while an inference runs; slow clients do not hold others. The
    header ``X-Session-Id`` names a session of the runtime; requests without one share one. A page
    in a browser is refused. What fails is told in one sentence, without a traceback. The runtime is
    not closed with the server.

    Args:
        runtime: Runs the policy, which has to say its ``action_names``.
        host: The address to listen at, as ``"127.0.0.1"`` or ``"::1"``; ``"localhost"`` is the
            first of them.
        port: 0 to 65535; at 0 one that is free is taken.
        token: What a client has to show as ``Authorization: Bearer``, if anything; health is told
            without.
        allow_remote: Whether *host* may be an address that other machines reach.
        hosts: Other names that clients call this server by, as that of a gateway.
        tls: The certificate, for ``https``.
        max_clients: How many connections there may be at once.
        patience_s: For how many seconds the headers of a request may come, then its body, and then
            for how long its answer may be taken; up to an hour.
        limits: How large messages may be.

    Raises:
        ContractError: If an argument is not as described.
        MissingDependencyError: If starlette or uvicorn is not installed.

    Example:
        >>> from urllib.request import urlopen
        >>> from vlmcore.policy.interface import PolicyInfo
        >>> from vlmcore.testing import ScriptedPolicy
        >>> from vlmcore_robotics.servers.threads import serve_in_thread
        >>> info = PolicyInfo(name="nod", action_names=("neck",))
        >>> with PolicyRuntime(ScriptedPolicy([[[0.1], [0.2]]], info=info)) as runtime:
        ...     with serve_in_thread(HttpPolicyServer(runtime, port=0)) as url:
        ...         urlopen(f"{url}/healthz").read()
        b'{"status": "ok"}'
    """

    def __init__(
        self,
        runtime: PolicyRuntime,
        *,
        host: str = "127.0.0.1",
        port: int = HTTP_PORT,
        token: Secret | None = None,
        allow_remote: bool = False,
        hosts: Sequence[str] = (),
        tls: ssl.SSLContext | None = None,
        max_clients: int = 256,
        patience_s: float = 10.0,
        limits: HttpLimits | None = None,
    ) -> None:
        action_names = action_names_of(runtime)
        require_tls(tls)
        require_count(max_clients=max_clients)
        require_finite_between(0.0, 3600.0, patience_s=patience_s)
        address = Address(host=host, port=port, allow_remote=allow_remote)
        super().__init__(address, "http" if tls is None else "https")
        self._threads = message_threads()
        self._answers = HttpAnswers(
            runtime,
            HttpCodec(
                policy=runtime.info.name,
                action_names=action_names,
                token=token,
                limits=limits or HttpLimits(),
            ),
            Admission(hosts=hosts, key=token),
            patience_s=patience_s,
            threads=self._threads,
        )
        self._answers.check()
        with optional_dependency("server", "starlette", "uvicorn"):
            from vlmcore_robotics.servers import _asgi, _uvicorn_listener  # noqa: PLC0415 - doors
        self._listener: Listener = _uvicorn_listener.Listener(
            _asgi.app_of(self._answers.answer),
            max_clients=max_clients,
            patience_s=patience_s,
            tls=tls,
        )

    async def _listen(self, host: str, port: int) -> int:
        return await self._listener.open(host=host, port=port)

    async def _hang_up(self, grace_s: float) -> None:
        await self._listener.close(grace_s=grace_s)
        self._threads.shutdown(wait=False)
