"""
What holds for every test: no network beyond loopback, and how hard hypothesis tries.

Files named ``test_*_torch.py`` need torch; where it is not installed they are not collected, and
the report's header says so. Sockets outside loopback are refused by pytest-socket, which the
options in pyproject.toml switch on.
"""

from __future__ import annotations

import gc
import importlib.util
import os

from hypothesis import HealthCheck, Phase, settings

HAS_TORCH = importlib.util.find_spec("torch") is not None

collect_ignore_glob = [] if HAS_TORCH else ["*_torch.py"]

_SLOW_IS_FINE = (HealthCheck.too_slow, HealthCheck.data_too_large)
settings.register_profile(
    "quick",
    max_examples=60,
    deadline=None,  # two busy cores are no measure of time
    derandomize="CI" in os.environ,
    suppress_health_check=_SLOW_IS_FINE,
)
settings.register_profile(
    "long", max_examples=3000, deadline=None, suppress_health_check=_SLOW_IS_FINE
)
settings.register_profile(  # as quick, but a failure is as good as its smallest example
    "mutants",
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=_SLOW_IS_FINE,
)
settings.load_profile("quick")  # --hypothesis-profile comes later, and wins


def pytest_report_header() -> str:
    """Say whether the tests of the torch parts run."""
    if HAS_TORCH:
        return "torch is installed: the tests of the torch parts run"
    return "torch is not installed: files named test_*_torch.py are left out"


def pytest_collection_finish() -> None:
    """
    Let garbage collections pass over what is loaded and collected by now, and stays to the end.

    Each model that is closed collects garbage, and would look through all tests and all of torch.
    """
    gc.collect()
    gc.freeze()
