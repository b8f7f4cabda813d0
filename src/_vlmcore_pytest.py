"""
The options of vlmcore's pytest plugin; what they do is in `vlmcore.testing.pytest_plugin`.

Pytest loads this module in every run on a machine that has vlmcore. It stands beside the package
because everything inside it loads NumPy, and is asked for more only when an option is used.
"""

from __future__ import annotations

import pytest

_POLICY = "--vlmcore-policy"
_EMBODIMENT = "--vlmcore-embodiment"
_EXAMPLES = "--vlmcore-examples"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("vlmcore", "promises of policies")
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


def pytest_configure(config: pytest.Config) -> None:
    """Bring in the checks, if they are asked for."""
    config.addinivalue_line(
        "markers", f"vlmcore_policy: a promise that the policy of {_POLICY} is held to"
    )
    policies = config.getoption(_POLICY)
    if policies is not None:
        if len(policies) > 1:
            given = " and ".join(policies)
            raise pytest.UsageError(f"{_POLICY}: got {given}, expected one: run pytest for each")
        from vlmcore.testing.pytest_plugin import PolicyChecks  # noqa: PLC0415 - it loads NumPy

        checks = PolicyChecks.from_options(config)
        config.pluginmanager.register(checks, "vlmcore-policy-checks")
    elif config.getoption(_EMBODIMENT) is not None:
        raise pytest.UsageError(f"{_EMBODIMENT}: got no {_POLICY} that it could be for")
