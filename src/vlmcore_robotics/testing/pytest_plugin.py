"""
The working part of the pytest plugin for servers: one test for each promise, and no test file.

``pytest --vlmcore-server URL`` brings it in; see the page "Test your server and your client". The
options themselves are in a module beside this package, which loads nothing.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs

from vlmcore._net.authorities import trusting
from vlmcore._optional import optional_dependency
from vlmcore.contracts.robot_files import read_embodiment
from vlmcore.errors import ContractError, VlmcoreError
from vlmcore.secrets import Secret
from vlmcore.testing._promises import said
from vlmcore_robotics.testing._server_under_test import ServerUnderTest
from vlmcore_robotics.testing.protocols import PolicyProtocol
from vlmcore_robotics.testing.server_checks import (
    SERVER_CHECKS,
    Finding,
    ServerCheck,
    ServerCheckResult,
)
from vlmcore_robotics.wire.layouts import aloha_layout, droid_layout, libero_layout

with optional_dependency("testing", "pytest"):
    import pytest

__all__ = ["ServerChecks"]

_SERVER = "--vlmcore-server"
_LAYOUT = "--vlmcore-layout"
_RISK = "vlmcore_risk"
_LAYOUTS: dict[str, Callable[[], Any]] = {
    "aloha": aloha_layout,
    "droid": droid_layout,
    "libero": libero_layout,
}


@attrs.frozen(kw_only=True, eq=False)
class ServerChecks:
    """
    What the options ask for; a plugin that adds a test for each promise of a server.

    Attributes:
        url: The option.
        server: The server that it says.
        strict: Whether a risk is a failure.
        missing: The promises without which nothing else makes sense, as far as they are broken.
    """

    url: str
    server: ServerUnderTest
    strict: bool
    missing: list[str] = attrs.field(factory=list)

    @classmethod
    def from_options(cls, config: pytest.Config) -> ServerChecks:
        """
        Read the options; the server is not called yet.

        Raises:
            pytest.UsageError: If something is not as described; in one line.
        """
        url: str = config.getoption(_SERVER)
        folder = config.invocation_params.dir
        robot: str | None = config.getoption("--vlmcore-embodiment")
        if robot is None:
            raise pytest.UsageError(f"{_SERVER}: got no --vlmcore-embodiment that it is for")
        authority: str | None = config.getoption("--vlmcore-ca")
        variable: str | None = config.getoption("--vlmcore-token-env")
        try:
            server = ServerUnderTest.at(
                url,
                protocol=_protocol(url),
                embodiment=read_embodiment(robot, folder=folder),
                layout=_layout(config.getoption(_LAYOUT), folder),
                observation=None,
                token=None if variable is None else Secret.from_env(variable),
                tls=None if authority is None else trusting(folder / authority),
                allow_remote=config.getoption("--vlmcore-allow-remote"),
                deterministic=config.getoption("--vlmcore-deterministic"),
                timeout_s=config.getoption("--vlmcore-timeout"),
            )
        except VlmcoreError as error:
            raise pytest.UsageError(f"{_SERVER}: {' '.join(str(error).split())}") from None
        return cls(url=url, server=server, strict=config.getoption("--vlmcore-strict"))

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> None:
        """Add the tests, before others select among them."""
        name = self.server.target.endpoint.origin.partition("://")[2]
        collector = _Server.from_parent(session, name=name, nodeid=name, checks=self)
        report = session.ihook.pytest_make_collect_report(collector=collector)
        session.ihook.pytest_collectreport(report=report)  # so that they are counted
        items.extend(report.result)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """List the risks."""
        for report in terminalreporter.getreports("passed"):
            for name, why in report.user_properties:
                if name == _RISK:
                    terminalreporter.write_line(f"{self.url}: risk: {why}")

    def hold(self, check: ServerCheck) -> ServerCheckResult:
        """Hold the server to a promise, unless it does not answer at all."""
        if self.missing:
            pytest.skip(f"not tried, since it is not so that {self.missing[0]}")
        result = check(self.server)
        if check.is_basic and result.finding is Finding.FAILED:
            self.missing.append(check.name)
        return result


class _Server(pytest.Collector):
    """What the tests of one server hang from."""

    def __init__(self, *, checks: ServerChecks, **node: Any) -> None:
        super().__init__(**node)
        self._checks = checks

    def collect(self) -> Iterator[pytest.Item]:
        """Give a test for each promise."""
        for check in SERVER_CHECKS:
            yield _Promise.from_parent(self, name=check.name, check=check, checks=self._checks)


class _Promise(pytest.Item):
    """The test of one promise."""

    def __init__(self, *, check: ServerCheck, checks: ServerChecks, **node: Any) -> None:
        super().__init__(**node)
        self._check, self._checks = check, checks
        self.add_marker("vlmcore_server")

    def runtest(self) -> None:
        """Hold the server to it."""
        result = self._checks.hold(self._check)
        match result.finding:
            case Finding.SKIPPED:
                pytest.skip(result.why)
            case Finding.FAILED:
                pytest.fail(result.why, pytrace=False)
            case Finding.RISK if self._checks.strict:
                pytest.fail(f"a risk: {result.why}", pytrace=False)
            case Finding.RISK:
                self.user_properties.append((_RISK, f"{result.name}: {result.why}"))
            case Finding.PASSED:
                pass

    def reportinfo(self) -> tuple[Path, None, str]:
        """Say where it stands: under the address of the server."""
        return Path(self.config.rootpath, self.nodeid.partition("::")[0]), None, self.name


def _protocol(url: str) -> PolicyProtocol:
    scheme, mark, _ = url.partition("://")
    for protocol in PolicyProtocol:
        if mark and scheme.lower() in protocol.schemes:
            return protocol
    listed = ", ".join(f"{each}://" for protocol in PolicyProtocol for each in protocol.schemes)
    raise ContractError("url", f"got {url[:80]!a}, expected an address with {listed}")


def _layout(spec: str | None, folder: Path) -> Any:
    """Find a layout by its name, or import it; *folder* is where pytest was started."""
    if spec is None:
        return None
    if spec in _LAYOUTS:
        return _LAYOUTS[spec]()
    module, _, path = spec.partition(":")
    if not all(part.isidentifier() for name in (module, path) for part in name.split(".")):
        listed = ", ".join(_LAYOUTS)
        raise pytest.UsageError(f"{_LAYOUT}: got {spec!r}, expected {listed} or module:layout")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        found = pkgutil.resolve_name(spec)
        return found() if callable(found) else found
    except Exception as error:
        words = " ".join(said(error).split())
        raise pytest.UsageError(f"{_LAYOUT}: importing {spec!r} {words}") from error
