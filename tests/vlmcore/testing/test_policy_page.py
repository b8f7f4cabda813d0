"""The page "Property-test your own policy in CI": its command does what the page shows."""

import re
import subprocess
import sysconfig
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs/how-to/test-your-own-policy.md"


def block_of(language: str) -> str:
    """Take the first block of *language*."""
    text = PAGE.read_text(encoding="utf-8")
    block = re.search(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    assert block is not None
    return block[1]


def test_the_command_prints_what_the_page_shows(tmp_path: Path) -> None:
    """
    With the policy of the page in the file that it names; ``...`` stands for any lines.
    """
    (tmp_path / "reach.py").write_text(block_of("python"), encoding="utf-8")
    scripts = Path(sysconfig.get_path("scripts"))

    done = subprocess.run(
        [scripts / "pytest", *block_of("sh").split()[1:]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert 0 == done.returncode, done.stdout + done.stderr
    printed = iter(done.stdout.splitlines())
    for shown in block_of("text").splitlines():
        assert shown == "..." or any(line.startswith(shown) for line in printed), shown


def test_ci_runs_the_command_of_the_page() -> None:
    """
    To the letter.
    """
    assert f"- run: {block_of('sh').strip()}\n" in block_of("yaml")
