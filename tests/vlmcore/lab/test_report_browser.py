"""The report in a real browser: it fits, says nothing on the console, prints, and can be read."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

from lab_report_cases import loaded, two, written
from vlmcore.lab.reporting import report_html

CHROMIUM = shutil.which("chromium") or ""
AXE = os.environ.get("AXE_CORE", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (CHROMIUM and AXE), reason="nox -s lab_report has both"),
]
PROBE = """
<script>%s</script>
<script>
axe.run(document, {resultTypes: ["violations"]}).then(found => {
  const told = document.createElement("pre");
  told.id = "told";
  told.textContent = JSON.stringify({
    violations: found.violations.map(each => [each.id, each.nodes.map(node => node.html)]),
    passes: found.passes.length,
    width: document.documentElement.scrollWidth,
    window: window.innerWidth,
  });
  document.body.append(told);
});
</script>
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    runs = [written(folder, two(times)) for times in (0.5, 1.0, 2.0)]
    runs += [written(folder, loaded(clients, dog=9.0, cat=9.0 * clients)) for clients in (1, 8)]
    path = folder / "report.html"
    path.write_text(report_html(runs), encoding="utf-8")
    return path


def browse(*words: str) -> subprocess.CompletedProcess[str]:
    common = ("--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0")
    return subprocess.run(
        [CHROMIUM, *common, *words], capture_output=True, text=True, check=True, timeout=120
    )


@pytest.mark.parametrize("width_px", [400, 1600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_and_everybody_can_read_it(page: Path, width_px: int, scheme: str) -> None:
    """
    axe-core finds nothing, and nothing is wider than the window.
    """
    probe = PROBE % Path(AXE).read_text(encoding="utf-8")
    text = re.sub(r"<meta http-equiv=.*?>", "", page.read_text(encoding="utf-8"))
    tried = page.with_name(f"tried-{width_px}-{scheme}.html")
    tried.write_text(text.replace("</body>", f"{probe}</body>"), encoding="utf-8")
    done = browse(
        f"--window-size={width_px},1200",
        "--virtual-time-budget=20000",
        "--dump-dom",
        *(["--force-dark-mode"] if scheme == "dark" else []),
        tried.as_uri(),
    )

    found = re.search(r'<pre id="told">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found is not None, done.stderr
    told = json.loads(unescape(found[1]))
    assert [] == told["violations"]
    assert told["passes"] > 10
    assert told["width"] <= max(told["window"], 500)  # no window of this browser is narrower


def test_the_page_is_drawn_and_printed_without_a_word_on_the_console(
    page: Path, tmp_path: Path
) -> None:
    """
    Its own policy would forbid whatever it should not need.
    """
    picture, paper = tmp_path / "page.png", tmp_path / "page.pdf"
    drawn = browse("--window-size=1600,3000", f"--screenshot={picture}", page.as_uri())
    printed = browse(f"--print-to-pdf={paper}", page.as_uri())

    assert picture.stat().st_size > 20_000
    assert paper.read_bytes().startswith(b"%PDF-")
    for done in (drawn, printed):
        assert "CONSOLE" not in done.stderr
