"""Write the golden file of every node's interface, for a person to look at the difference."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from comfy_cases import GOLDEN, interface
from vlmcore_comfy.catalog import load_catalog

for node_id, node in load_catalog().nodes.items():
    text = json.dumps(interface(node), indent=2, ensure_ascii=False)
    (GOLDEN / f"{node_id}.json").write_text(f"{text}\n", encoding="utf-8")
