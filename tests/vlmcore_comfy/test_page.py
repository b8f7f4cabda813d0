"""
View Text in ComfyUI's own page, in a real browser: it shows what is being written, and keeps it.

It needs what `test_in_comfyui` needs, and chromium.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from comfyui.browser import CHROMIUM, Page, page
from comfyui.running import comfyui
from vlmcore_comfy.graphs import graph_from_json, with_inputs

CHECKOUT = os.environ.get("COMFYUI_DIR")
EXAMPLE = Path(__file__).parents[2] / "examples" / "comfyui" / "describe-embedded.json"
IS_READY = "return !!window.LiteGraph?.registered_node_types?.ViewText && !!window.app?.graph"
VIEW = "const node = window.app.graph._nodes.find((each) => each.type === 'ViewText');"
SHOWN = f"{VIEW} return node?.widgets?.find((w) => w.name === 'vlmcore_shown_text')?.element.value"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (CHECKOUT and CHROMIUM), reason="nox -s comfy has a ComfyUI and chromium"
    ),
]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    assert CHECKOUT is not None
    folder = tmp_path_factory.mktemp("page")
    with (
        comfyui(Path(CHECKOUT).resolve(), folder / "base") as running,
        page(running.url, folder / "profile") as shown,
    ):
        shown.until(IS_READY)
        yield shown


def queue(shown: Page, prompt: str) -> None:
    graph = graph_from_json(EXAMPLE.read_text(encoding="utf-8"))
    changed = json.dumps(with_inputs(graph, {"3.prompt": prompt}))
    shown.run(f"await window.app.loadApiJson({changed}, 'tried'); return true")
    shown.run("await window.app.queuePrompt(0); return true")


def test_the_text_is_shown_and_is_no_widget_of_the_workflow(opened: Page) -> None:
    """
    Workflows hold the values of widgets by their place: there is none more than before.
    """
    queue(opened, "What is in this picture?")
    opened.until(f"{SHOWN} === 'An empty red picture.'")
    saved = opened.run(
        "return window.app.graph.serialize().nodes.find((each) => each.type === 'ViewText')"
    )
    assert saved["widgets_values"] == [""]
    assert saved["properties"]["vlmcore_shown_text"] == "An empty red picture."


def test_the_text_is_there_when_the_page_is_loaded_again(opened: Page) -> None:
    """
    The page saves the workflow, and the text with it.
    """
    queue(opened, "What is in this picture?")
    opened.until(f"{SHOWN} === 'An empty red picture.'")
    workflow = json.dumps(opened.run("return window.app.graph.serialize()"))
    opened.run("window.wasThereBefore = true; return true")
    opened.ask("Page.reload")  # which answers while the old page still stands
    opened.until(f"if (window.wasThereBefore) return false; {IS_READY}")
    opened.run(f"await window.app.loadGraphData({workflow}); return true")
    assert opened.until(SHOWN) == "An empty red picture."


def test_the_text_grows_while_it_is_written(opened: Page) -> None:
    """
    What the node before it writes is shown at once, long before the graph has run to its end.
    """
    opened.run(
        f"window.seen = []; {VIEW} window.timer = setInterval(() => {{"
        "const shown = window.app.graph._nodes.find((each) => each.type === 'ViewText')"
        "?.widgets?.find((w) => w.name === 'vlmcore_shown_text')?.element.value;"
        "if (shown && window.seen.at(-1) !== shown) window.seen.push(shown); }, 2); return true"
    )
    queue(opened, "Describe this picture, and what is in it, in every detail.")
    opened.until("return window.app.ui && window.seen.length > 1 && window.seen.at(-1).length > 5")
    seen = opened.run("clearInterval(window.timer); return window.seen")
    assert len(seen) > 1
    assert any(later.startswith(early) for early, later in pairwise(seen))


def test_a_text_that_looks_like_markup_is_shown_as_it_is(opened: Page) -> None:
    """
    A model, or a stranger's graph, may write anything.
    """
    attack = '<img src=x onerror="window.attacked = true"><script>window.attacked = true</script>'
    graph = json.dumps({"1": {"class_type": "ViewText", "inputs": {"text": attack}}})
    opened.run(f"await window.app.loadApiJson({graph}, 'tried'); return true")
    opened.run("await window.app.queuePrompt(0); return true")
    assert opened.until(SHOWN) == attack
    assert opened.run("return window.attacked === undefined")


def test_our_scripts_say_nothing_on_the_console(opened: Page) -> None:
    """
    What is told there is of others.
    """
    assert [] == [said for said in opened.console if "vlmcore" in said]
