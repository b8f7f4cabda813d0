"""Runs a node inside ComfyUI: in place, on a thread or on the loop, and stops it when asked to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import torch

from vlmcore_comfy._comfyui.host import ComfyHost, interrupt_error, is_interrupted
from vlmcore_comfy.declaring import Node, NodeResult
from vlmcore_comfy.hosting import NodeStoppedError
from vlmcore_comfy.loops import start_on_loop

__all__ = ["run_node"]

# How long a person waits at most until a node hears that it is to stop.
_LOOK_EVERY_S = 0.05


async def run_node(node: Node[..., Any], inputs: Mapping[str, Any]) -> NodeResult:
    """
    Run *node* and give what it gave.

    Raises:
        BaseException: Whatever the node raises; ComfyUI's own if the person stopped the graph.
    """
    host = ComfyHost()
    arguments = {**inputs, "comfyui": host} if node.wants_host else dict(inputs)
    try:
        if node.is_coroutine:
            future = asyncio.wrap_future(start_on_loop(node(**arguments)))
            given = await _until_stopped(future, host, can_be_cancelled=True)
        elif node.is_threaded:
            thread = asyncio.ensure_future(asyncio.to_thread(_without_gradients, node, arguments))
            given = await _until_stopped(thread, host, can_be_cancelled=False)
        else:
            given = node(**arguments)
    except NodeStoppedError:
        raise interrupt_error() from None
    return given if isinstance(given, NodeResult) else NodeResult(tuple(given))


def _without_gradients(node: Node[..., Any], arguments: Mapping[str, Any]) -> Any:
    # ComfyUI's own thread runs in this mode, which belongs to a thread.
    with torch.inference_mode():
        return node(**arguments)


async def _until_stopped(
    work: asyncio.Future[Any], host: ComfyHost, *, can_be_cancelled: bool
) -> Any:
    """Wait for *work*; tell it to stop when the person stops the graph or ComfyUI gives it up."""
    try:
        while True:
            done, _ = await asyncio.wait({work}, timeout=_LOOK_EVERY_S)
            if done:
                given = work.result()
                host.raise_if_stopped()
                return given
            if is_interrupted():
                host.stop()
                if can_be_cancelled:
                    work.cancel()
                    raise NodeStoppedError
    finally:
        # Another node may have failed: then nobody waits for this one any more.
        if not work.done():
            host.stop()
        if can_be_cancelled:
            work.cancel()
