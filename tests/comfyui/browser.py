"""A page in a real chromium, asked over its own protocol of debugging."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from websockets.sync.client import ClientConnection, connect

CHROMIUM = shutil.which("chromium") or ""


class Page:
    """
    One page.

    Attributes:
        console: What it said of errors, and what was thrown in it.
    """

    def __init__(self, connection: ClientConnection) -> None:
        self.console: list[str] = []
        self._connection = connection
        self._numbers = itertools.count(1)
        for domain in ("Runtime", "Page", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> Any:
        number = next(self._numbers)
        words = {"id": number, "method": method, "params": parameters}
        self._connection.send(json.dumps(words))
        while True:
            said = json.loads(self._connection.recv(timeout=60))
            if said.get("id") == number:
                assert "error" not in said, said
                return said["result"]
            self._heard(said)

    def run(self, script: str) -> Any:
        """Run a script, which may await, and give its value."""
        answer = self.ask(
            "Runtime.evaluate",
            expression=f"(async () => {{ {script} }})()",
            awaitPromise=True,
            returnByValue=True,
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, script: str, patience_s: float = 60) -> Any:
        """Run a script until it gives something."""
        ends_s = time.monotonic() + patience_s
        while time.monotonic() < ends_s:
            try:
                value = self.run(script)
            except AssertionError:
                value = None
            if value:
                return value
            time.sleep(0.2)
        raise AssertionError(f"never true: {script}\n{self.console}")

    def _heard(self, said: dict[str, Any]) -> None:
        details = said.get("params", {})
        match said.get("method"):
            case "Runtime.exceptionThrown":
                self.console.append(json.dumps(details["exceptionDetails"])[:2000])
            case "Log.entryAdded" if details["entry"]["level"] == "error":
                self.console.append(json.dumps(details["entry"])[:2000])
            case _:
                pass


@contextmanager
def page(url: str, profile: Path) -> Iterator[Page]:
    """Open a page, with a profile of its own."""
    command = [
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1600,1000"),
        *("--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"),
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = ""
            while not (found := re.search(r"DevTools listening on ws://([^/]+)/", said)):
                line = process.stderr.readline()
                assert line, said
                said += line
            opened = Request(f"http://{found[1]}/json/new?{url}", method="PUT")
            with urlopen(opened) as answer:
                target = json.load(answer)["webSocketDebuggerUrl"]
            with connect(target, max_size=None, proxy=None) as connection:
                yield Page(connection)
        finally:
            process.kill()
