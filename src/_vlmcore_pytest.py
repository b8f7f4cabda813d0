"""
The options of vlmcore's pytest plugin, and a fixture for those who write clients.

What they do is in `vlmcore.testing.pytest_plugin` and in `vlmcore_robotics.testing.pytest_plugin`.

Pytest loads this module in every run on a machine that has vlmcore. It stands beside the package
because everything inside it loads NumPy, and is asked for more only when an option is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from vlmcore_robotics.testing.hostile_server import HostileServer

_POLICY = "--vlmcore-policy"
_EMBODIMENT = "--vlmcore-embodiment"
_EXAMPLES = "--vlmcore-examples"
_SERVER = "--vlmcore-server"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("vlmcore", "promises of policies, and of policy servers")
    group.addoption(
        _POLICY,
        action="append",
        metavar="MODULE:FACTORY",
        help="hold the policies that FACTORY() makes to every promise of vlmcore's policies",
    )
    group.addoption(
        _EMBODIMENT,
        metavar="NAME|FILE",
        help="the robot that they are for: a template of vlmcore, or an embodiment document",
    )
    group.addoption(
        _EXAMPLES,
        metavar="N",
        type=int,
        default=50,
        help="random observations of that robot that they are shown (default: 50; 0: none)",
    )
    group.addoption(
        "--vlmcore-deterministic",
        action="store_true",
        help="the same observation after a reset must give the same numbers",
    )
    group.addoption(
        "--vlmcore-patience",
        metavar="SECONDS",
        type=float,
        default=120.0,
        help="the longest that one check may take (default: 120)",
    )

    group.addoption(
        _SERVER,
        metavar="URL",
        help="hold the server at URL to every promise of policy servers; it is attacked. ws:// and "
        "wss:// are openpi, http:// and https:// the HTTP protocol, tcp:// GR00T",
    )
    group.addoption(
        "--vlmcore-layout",
        metavar="NAME|MODULE:LAYOUT",
        help="the keys of its requests, for openpi and GR00T: aloha, droid, libero, or an object",
    )
    group.addoption(
        "--vlmcore-token-env",
        metavar="VARIABLE",
        help="the environment variable with the token that it is shown",
    )
    group.addoption(
        "--vlmcore-timeout",
        metavar="SECONDS",
        type=float,
        default=10.0,
        help="how long one answer of it may take (default: 10)",
    )
    group.addoption(
        "--vlmcore-ca",
        metavar="FILE",
        help="the authorities, in PEM, that say whom its certificate is of, instead of those that "
        "browsers know",
    )
    group.addoption("--vlmcore-strict", action="store_true", help="what is a risk only fails, too")
    group.addoption("--vlmcore-allow-remote", action="store_true", help="it may be on another host")


@pytest.fixture
def vlmcore_hostile_server() -> Iterator[Callable[..., HostileServer]]:
    """Start policy servers that misbehave; the arguments are those of `HostileServer`."""
    with ExitStack() as stack:

        def start(*arguments: Any, **options: Any) -> HostileServer:
            from vlmcore_robotics.testing.hostile_server import (  # noqa: PLC0415 - it loads NumPy
                HostileServer,
            )

            return stack.enter_context(HostileServer(*arguments, **options))

        yield start


def pytest_configure(config: pytest.Config) -> None:
    """Bring in the checks, if they are asked for."""
    config.addinivalue_line(
        "markers", f"vlmcore_policy: a promise that the policy of {_POLICY} is held to"
    )
    config.addinivalue_line(
        "markers", f"vlmcore_server: a promise that the server of {_SERVER} is held to"
    )
    if config.getoption(_SERVER) is not None:
        from vlmcore_robotics.testing.pytest_plugin import ServerChecks  # noqa: PLC0415 - NumPy

        config.pluginmanager.register(ServerChecks.from_options(config), "vlmcore-server-checks")
    policies = config.getoption(_POLICY)
    if policies is not None:
        if len(policies) > 1:
            given = " and ".join(policies)
            raise pytest.UsageError(f"{_POLICY}: got {given}, expected one: run pytest for each")
        from vlmcore.testing.pytest_plugin import PolicyChecks  # noqa: PLC0415 - it loads NumPy

        checks = PolicyChecks.from_options(config)
        config.pluginmanager.register(checks, "vlmcore-policy-checks")
    elif config.getoption(_EMBODIMENT) is not None and config.getoption(_SERVER) is None:
        expected = f"{_POLICY} or {_SERVER}"
        raise pytest.UsageError(f"{_EMBODIMENT}: got no {expected} that it could be for")
