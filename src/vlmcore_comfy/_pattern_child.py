"""
A regular expression over a text, in a process of its own: run by `vlmcore_comfy.patterns`, alone.

What a stranger's workflow searches for may take Python for ever, and nothing can end that from
within. This process can be ended. It is given JSON and gives JSON.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

_TOO_LONG = "the text becomes longer than {} characters"
_TOO_MANY = "there are more than {} items"


def replace(asked: dict[str, Any]) -> dict[str, Any]:
    """Replace what is found."""
    size = len(asked["text"])
    replacement = asked["replacement"]
    is_plain = "\\" not in replacement  # to look for groups each time takes older Pythons seconds

    def written(found: re.Match[str]) -> str:
        nonlocal size
        text = replacement if is_plain else found.expand(replacement)
        size += len(text) - len(found.group())
        if size > asked["max_characters"]:
            raise ValueError(_TOO_LONG.format(asked["max_characters"]))
        return text

    text, count = _pattern(asked).subn(written, asked["text"], count=asked["most"])
    return {"text": text, "count": count}


def split(asked: dict[str, Any]) -> dict[str, Any]:
    """Split where it is found; what groups found is no item."""
    items, at, text = [], 0, asked["text"]
    for found in _pattern(asked).finditer(text):
        if found.end() == found.start():
            continue
        items.append(text[at : found.start()])
        at = found.end()
        if len(items) > asked["max_items"]:
            raise ValueError(_TOO_MANY.format(asked["max_items"]))
    return {"items": [*items, text[at:]]}


def _pattern(asked: dict[str, Any]) -> re.Pattern[str]:
    return re.compile(asked["pattern"], 0 if asked["case_sensitive"] else re.IGNORECASE)


def main() -> None:
    """Do what standard input asks for, and answer on standard output."""
    asked = json.load(sys.stdin)
    work = {"replace": replace, "split": split}[asked["work"]]
    try:
        answer = work(asked)
    except (re.error, ValueError, IndexError, OverflowError) as error:
        answer = {"problem": str(error)}
    except RecursionError:
        answer = {"problem": "its parts are nested too deeply"}
    json.dump(answer, sys.stdout)  # in ASCII: no locale changes it


if __name__ == "__main__":
    main()
