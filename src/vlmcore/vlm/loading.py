"""The door to models, here or behind a server; what is heavy is imported when one is loaded."""

from __future__ import annotations

import enum
import os
from typing import TypeVar

import attrs

from vlmcore._optional import optional_dependency
from vlmcore.errors import ContractError
from vlmcore.limits import ReuseLimits
from vlmcore.vlm.detector import Detector
from vlmcore.vlm.detector_catalog import DEFAULT_DETECTOR
from vlmcore.vlm.placement import Attention, Decoding, Dtype, MemoryMode, Placement, WeightLoading
from vlmcore.vlm.predictor import Predictor
from vlmcore.vlm.remote.providers import names_a_server
from vlmcore.vlm.residency import PROCESS, Residency
from vlmcore.vlm.sources import EMBEDDED, resolve_detector, resolve_model

__all__ = ["load_detector", "load_predictor"]

_Choice = TypeVar("_Choice", bound=enum.Enum)
_OF_THIS_MACHINE = ("chat_template", "revision", "residency", "reuse")


def load_predictor(
    model: str | os.PathLike[str] = EMBEDDED,
    *,
    device: str = "auto",
    dtype: Dtype | str = Dtype.AUTO,
    memory: MemoryMode | str = MemoryMode.MANAGED,
    attention: Attention | str = Attention.AUTO,
    weights: WeightLoading | str = WeightLoading.TRANSFORMERS,
    weights_budget_bytes: int | None = None,
    decoding: Decoding | str = Decoding.AS_LOADED,
    chat_template: str | None = None,
    revision: str | None = None,
    residency: Residency | None = None,
    reuse: ReuseLimits | bool = True,
) -> Predictor:
    """
    Load a model onto this machine, or make a predictor of one that is behind a server.

    A model of the hub is downloaded when it is not in the cache. Use the result as a context
    manager, or close it, to give its memory back. Loading what is loaded already, in the same form,
    gives a second predictor of the same weights.

    Args:
        model: ``"embedded"`` (part of the package, needs no hub); a key or label of the catalog, as
            ``"qwen3-vl-4b"``; a folder, as ``"./models/mine"``; or a hub id, as ``"org/name"``.
            In this order. Or a model behind a server, as ``"http://127.0.0.1:8000/v1#model"``, or
            ``"openai:model"`` with the name of a provider, whose key is in the environment; it is
            placed already, and the other arguments are left alone. Its class takes more arguments:
            `vlmcore.vlm.remote`.
        device: ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"xpu"`` or ``"mps"``.
        dtype: The number format of the weights: ``"auto"``, ``"bfloat16"``, ``"float16"`` or
            ``"float32"``.
        memory: ``"managed"``, ``"nf4"`` (4 bits), ``"int8"`` (8 bits) or ``"cpu"``.
        attention: ``"auto"``, ``"flash_attention_2"`` or ``"eager"``.
        weights: How the weights are loaded: by ``"transformers"``; ``"mapped"``, as pages of their
            files, which other processes share (on the CPU); ``"copied"``, by way of bounded staging
            memory; or ``"lazy"``, when a module needs them, within a budget. The last three read
            packs too, as ``model.flashpack`` beside the ``config.json``.
        weights_budget_bytes: What the weights may take at once with ``"lazy"``.
        decoding: How the steps of one token are made: from the weights ``"as_loaded"``; or, on a
            CPU, from copies of them in ``"float16"``, for half as much memory again; or
            ``"compiled"``, with copies of what 16 bits hold exactly; or ``"compiled_float16"``,
            which rounds the others.
        chat_template: A Jinja chat template that takes the place of the model's own.
        revision: A branch, tag or commit, for models of the hub.
        residency: Whose memory the model lives in; the process's own where none is given.
        reuse: What is kept for answers to come, of pictures and of prompts, and taken over where
            they come again: as much as `vlmcore.limits.ReuseLimits` says, or nothing for ``False``.

    Raises:
        ModelAccessError: If the model is not found, gated, or its hub is out of reach.
        UnsupportedModelError: If it is not of a kind that can be run here, or not so.
        ModelMemoryError: If it does not fit into the memory that is free.
        ModelError: If its files are damaged, or its server does not say what it has.
        EndpointError: If its server may not be dialled.
        MissingDependencyError: If a package that it needs is not installed.
        ContractError: If an argument is not one of those above, or the device is not here.

    Example:
        >>> with load_predictor("embedded") as predictor:
        ...     predictor.info.memory
        'managed'
    """
    placement = Placement(
        device=device,
        dtype=_choice("dtype", dtype, Dtype),
        memory=_choice("memory", memory, MemoryMode),
        attention=_choice("attention", attention, Attention),
        weights=_choice("weights", weights, WeightLoading),
        weights_budget_bytes=weights_budget_bytes,
        decoding=_choice("decoding", decoding, Decoding),
    )
    _require_kind("chat_template", chat_template, str, "a Jinja template as text")
    _require_kind("residency", residency, Residency, "a Residency")
    _require_kind("reuse", reuse, (bool, ReuseLimits), "True, False or ReuseLimits")
    if isinstance(model, str) and names_a_server(model):
        _require_unplaced(
            placement, chat_template, revision, residency, None if reuse is True else reuse
        )
        from vlmcore.vlm.remote import _naming  # noqa: PLC0415 - what is of the network

        return _naming.open_served_model(model)
    source = resolve_model(model, revision)
    with optional_dependency("local", "torch", "transformers", "PIL"):
        from vlmcore.vlm.backends import transformers_chat  # noqa: PLC0415  # loads PyTorch
    return transformers_chat.TransformersPredictor(
        source=source,
        placement=placement,
        residency=PROCESS if residency is None else residency,
        chat_template=chat_template,
        reuse=ReuseLimits() if reuse is True else reuse or None,
    )


def load_detector(
    model: str | os.PathLike[str] = DEFAULT_DETECTOR,
    *,
    device: str = "auto",
    dtype: Dtype | str = Dtype.AUTO,
    revision: str | None = None,
    residency: Residency | None = None,
) -> Detector:
    """
    Load a model that finds what labels name: Grounding DINO, OWLv2 or OmDet-Turbo.

    A model of the hub is downloaded when it is not in the cache. Use the result as a context
    manager, or close it, to give its memory back.

    Args:
        model: A key or label of `vlmcore.vlm.detector_catalog`, a folder, or a hub id; in this
            order.
        device: ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"xpu"`` or ``"mps"``.
        dtype: The number format of the weights. ``"auto"`` is ``"float32"`` on every device: such
            models are small, and what they find hangs on scores close to a threshold.
        revision: A branch, tag or commit, for models of the hub.
        residency: Whose memory the model lives in; the process's own where none is given, together
            with that of `load_predictor`.

    Raises:
        ModelAccessError: If the model is not found, gated, or its hub is out of reach.
        UnsupportedModelError: If it is not of a kind that can be run here.
        ModelMemoryError: If it does not fit into the memory that is free.
        ModelError: If its files are damaged.
        MissingDependencyError: If a package that it needs is not installed.
        ContractError: If an argument is not one of those above, or the device is not here.
    """
    chosen = _choice("dtype", dtype, Dtype)
    placement = Placement(device=device, dtype=Dtype.FLOAT32 if chosen is Dtype.AUTO else chosen)
    _require_kind("residency", residency, Residency, "a Residency")
    source = resolve_detector(model, revision)
    with optional_dependency("local", "torch", "transformers", "PIL"):
        from vlmcore.vlm.backends import transformers_detection  # noqa: PLC0415  # loads PyTorch
    return transformers_detection.TransformersDetector(
        source=source, placement=placement, residency=PROCESS if residency is None else residency
    )


def _require_unplaced(placement: Placement, *others: object) -> None:
    """Require that nothing is said about where a model is to be: its server has decided that."""
    given = attrs.asdict(placement, recurse=False)
    for field, value in attrs.asdict(Placement(), recurse=False).items():
        if given[field] != value:
            raise ContractError(field, "got one, expected none for a model behind a server")
    for field, other in zip(_OF_THIS_MACHINE, others, strict=True):
        if other is not None:
            raise ContractError(field, "got one, expected none for a model behind a server")


def _require_kind(field: str, value: object, kind: type | tuple[type, ...], words: str) -> None:
    if value is not None and not isinstance(value, kind):
        raise ContractError(field, f"got {type(value).__name__}, expected {words}")


def _choice(field: str, value: object, kind: type[_Choice]) -> _Choice:
    """Take a member of *kind*, or its value as text."""
    if isinstance(value, kind):
        return value
    for member in kind:
        if isinstance(value, str) and member.value == value:
            return member
    values = ", ".join(repr(member.value) for member in kind)
    raise ContractError(field, f"got {value!r:.80}, expected one of {values}")
