"""The policies behind servers that nodes have asked, connected from one graph to the next."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

from vlmcore._copying import thawed
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.json_text import write_json
from vlmcore.policy.interface import AsyncPolicy
from vlmcore_comfy.seeing import SeenBy

__all__ = ["ask_policy"]

_MOST = 8  # connections that are kept; the one that was asked longest ago is given up

# Only the loop of the pack touches it, so that no lock is needed.
_kept: OrderedDict[Hashable, AsyncPolicy] = OrderedDict()


async def ask_policy(
    key: Hashable, make: Callable[[], AsyncPolicy], seen: SeenBy
) -> tuple[ActionChunk, str]:
    """
    Ask the policy of *key*, made if it is not there, on the loop of the pack.

    A policy that failed is given up, so that the next graph begins anew with whatever server is
    there then.

    Returns:
        What it proposes, and a report in JSON.

    Raises:
        VlmcoreError: If it cannot be asked, or what it answers is no chunk.
    """
    policy = _kept.pop(key, None)
    is_new = policy is None
    if policy is None:
        policy = make()
    began_s = time.perf_counter()
    try:
        chunk = await policy.infer(seen.observation)
    except BaseException:  # stopped by the person, too
        await policy.aclose()
        raise
    took_s = time.perf_counter() - began_s
    await _keep(key, policy)
    report = {
        "source": chunk.source,
        "horizon": chunk.horizon,
        "action_dim": len(chunk.names),
        "action_names": list(chunk.names),
        "latency_ms": round(1000 * took_s, 3),
        "connected_anew": is_new,
        "metadata": thawed(chunk.metadata),
    }
    return chunk, write_json(report)


async def _keep(key: Hashable, policy: AsyncPolicy) -> None:
    other = _kept.pop(key, None)  # the same was asked by another node meanwhile
    _kept[key] = policy
    if other is not None:
        await other.aclose()
    while len(_kept) > _MOST:
        _, oldest = _kept.popitem(last=False)
        await oldest.aclose()
