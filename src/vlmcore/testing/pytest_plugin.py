"""
The working part of the pytest plugin: one test for each promise of a policy, and no test file.

``pytest --vlmcore-policy MODULE:FACTORY`` brings it in; see the page "Property-test your own policy
in CI". The options themselves are in a module beside this package, which loads nothing.
"""

from __future__ import annotations

import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, reduce
from pathlib import Path
from typing import Any

import attrs

from vlmcore._arrays import require_positive
from vlmcore._optional import optional_dependency
from vlmcore._spelling import did_you_mean
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.contracts.robot_files import read_embodiment
from vlmcore.errors import ContractError, MissingDependencyError
from vlmcore.policy.interface import PolicyInfo
from vlmcore.testing._policy_promises import PROPERTY
from vlmcore.testing._policy_under_test import opened
from vlmcore.testing._promises import BrokenPromiseError, keep_within, said
from vlmcore.testing.example_observations import example_observation
from vlmcore.testing.policy_checks import (
    POLICY_CHECKS,
    MakePolicy,
    PolicyCheckError,
    vet_proposal,
)

with optional_dependency("testing", "pytest"):
    import pytest

__all__ = ["PolicyChecks"]

_POLICY = "--vlmcore-policy"
_EMBODIMENT = "--vlmcore-embodiment"
_EXAMPLES = "--vlmcore-examples"
_VETTING = "the gate looks at what it proposes"  # it fails nothing: see the summary
_FOUND = "vlmcore_gate"
_PATIENCE_FOR_EXAMPLES = 5  # times as long as for one check


@attrs.frozen(kw_only=True, eq=False)
class PolicyChecks:
    """
    What the options ask for; a plugin that adds a test for each promise.

    Attributes:
        spec: The option, ``"module:factory"``.
        make_policy: The factory.
        observation: What the policies are shown.
        embodiment: The robot that they are for, if it is known.
        examples: How many random observations they are shown.
        deterministic: Whether the same must give the same.
        patience_s: The longest that one check may take, in seconds.
    """

    spec: str
    make_policy: MakePolicy
    observation: Observation
    embodiment: Embodiment | None
    examples: int
    deterministic: bool
    patience_s: float

    @classmethod
    def from_options(cls, config: pytest.Config) -> PolicyChecks:
        """
        Read the options, find the factory, and make one policy to see what it is.

        Raises:
            pytest.UsageError: If something is not as described; in one line.
        """
        (spec,) = config.getoption(_POLICY)
        examples: int = config.getoption(_EXAMPLES)
        patience_s: float = config.getoption("--vlmcore-patience")
        robot: str | None = config.getoption(_EMBODIMENT)
        with _usage("--vlmcore-patience"):
            require_positive(seconds=patience_s)
        if examples < 0:
            raise pytest.UsageError(f"{_EXAMPLES}: got {examples}, expected 0 or more")
        folder = config.invocation_params.dir
        with _usage(_EMBODIMENT):
            embodiment = None if robot is None else read_embodiment(robot, folder=folder)
        make_policy = _find_factory(spec, folder)
        expected = _try_out(spec, make_policy, embodiment, patience_s)
        return cls(
            spec=spec,
            make_policy=make_policy,
            observation=example_observation(expected),
            embodiment=embodiment,
            examples=examples,
            deterministic=config.getoption("--vlmcore-deterministic"),
            patience_s=patience_s,
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> None:
        """Add the tests, before others select among them."""
        collector = _Policy.from_parent(session, name=self.spec, nodeid=self.spec, checks=self)
        report = session.ihook.pytest_make_collect_report(collector=collector)
        session.ihook.pytest_collectreport(report=report)  # so that they are counted
        items.extend(report.result)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what the gate found."""
        for report in terminalreporter.getreports("passed"):
            for name, found in report.user_properties:
                if name == _FOUND:
                    terminalreporter.write_line(f"{self.spec}: the gate finds: {found}")

    def tests(self) -> Iterator[tuple[str, Callable[[], str | None]]]:
        """Name each test and give what runs it, which may say what the gate found."""
        shared: dict[str, Any] = {
            "embodiment": self.embodiment,
            "patience_s": self.patience_s,
        }
        for check in POLICY_CHECKS:
            if self.embodiment is not None or not check.needs_embodiment:
                yield (
                    check.name,
                    partial(
                        check,
                        self.make_policy,
                        self.observation,
                        deterministic=self.deterministic,
                        **shared,
                    ),
                )
        if self.embodiment is not None:
            yield _VETTING, lambda: str(vet_proposal(self.make_policy, self.observation, **shared))
            if self.examples:
                yield PROPERTY, partial(self._try_examples, self.embodiment)

    def _try_examples(self, embodiment: Embodiment) -> None:
        try:
            from vlmcore.testing.policy_properties import (  # noqa: PLC0415 - it needs hypothesis
                check_policy_properties,
            )
        except MissingDependencyError as error:
            pytest.skip(str(error))
        check_policy_properties(
            self.make_policy,
            embodiment,
            max_examples=self.examples,
            patience_s=self.patience_s * _PATIENCE_FOR_EXAMPLES,
        )


class _Policy(pytest.Collector):
    """What the tests of one policy hang from."""

    def __init__(self, *, checks: PolicyChecks, **node: Any) -> None:
        super().__init__(**node)
        self._checks = checks

    def collect(self) -> Iterator[pytest.Item]:
        """Give a test for each promise."""
        for name, run in self._checks.tests():
            yield _Promise.from_parent(self, name=name, run=run)


class _Promise(pytest.Item):
    """The test of one promise."""

    def __init__(self, *, run: Callable[[], str | None], **node: Any) -> None:
        super().__init__(**node)
        self._run = run
        self.add_marker("vlmcore_policy")

    def runtest(self) -> None:
        """Hold a fresh policy to it."""
        found = self._run()
        if found is not None:
            self.user_properties.append((_FOUND, found))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Say what was broken, and show what the policy raised, if it is that."""
        error = excinfo.value
        if not isinstance(error, PolicyCheckError):
            return super().repr_failure(excinfo, style)
        lines = [problem for _, problem in error.failures]
        if error.__cause__ is not None:
            lines += ["", "".join(traceback.format_exception(error.__cause__)).rstrip()]
        return "\n".join(lines)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Say where it stands: under the name of the policy."""
        return Path(self.config.rootpath, self.nodeid.partition("::")[0]), None, self.name


@contextmanager
def _usage(option: str) -> Iterator[None]:
    """Tell of what is wrong with *option* as pytest tells of its own options."""
    try:
        yield
    except ContractError as error:
        told = error.problem if error.field == "name" else str(error)
        raise pytest.UsageError(f"{option}: {' '.join(told.split())}") from None


def _find_factory(spec: str, folder: Path) -> MakePolicy:
    """Import the factory; *folder* is where pytest was started, as with ``python -m pytest``."""
    module_name, _, path = spec.partition(":")
    if not all(part.isidentifier() for name in (module_name, path) for part in name.split(".")):
        raise pytest.UsageError(f"{_POLICY}: got {spec!r}, expected module:factory")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        module = pkgutil.resolve_name(f"{module_name}:")
    except (Exception, SystemExit) as error:
        raise pytest.UsageError(f"{_POLICY}: importing {module_name!r} {_line(error)}") from error
    try:
        factory = reduce(getattr, path.split("."), module)
    except AttributeError:
        names = {name.lower(): name for name in vars(module) if not name.startswith("_")}
        hint = did_you_mean(path, names)
        raise pytest.UsageError(f"{_POLICY}: {module_name!r} has no {path!r}{hint}") from None
    if not callable(factory):
        kind = type(factory).__name__
        raise pytest.UsageError(f"{_POLICY}: {spec!r} is of type {kind}, expected a function")
    return factory  # type: ignore[no-any-return]


def _line(error: BaseException) -> str:
    return " ".join(said(error).split())


def _try_out(
    spec: str, make_policy: MakePolicy, embodiment: Embodiment | None, patience_s: float
) -> Embodiment | PolicyInfo:
    """Make one policy, since what cannot be made is said once, and say what it expects."""
    infos: list[PolicyInfo] = []

    def make() -> None:
        with opened(make_policy) as policy:
            if embodiment is None:
                infos.append(policy.info)

    try:
        keep_within(patience_s, make)
    except BrokenPromiseError as error:
        raise pytest.UsageError(f"{_POLICY}: {spec!r}: {' '.join(str(error).split())}") from error
    if embodiment is not None:
        return embodiment
    (info,) = infos
    if info.state_names is None or info.cameras is None:
        raise pytest.UsageError(
            f"{_POLICY}: the info of {info.name!r} does not say both state_names and cameras, "
            f"so nobody knows what to show it: give {_EMBODIMENT}"
        )
    return info
