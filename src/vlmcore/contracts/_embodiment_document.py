"""Embodiments as documents. The parallel lists of the document are one record here."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

from vlmcore._arguments import shown
from vlmcore._arrays import require_name, require_names
from vlmcore.contracts._action_modes import reference_of
from vlmcore.contracts._rotation_documents import read_rotations, rotations_to_document
from vlmcore.contracts.embodiment import (
    ActionDim,
    ActionSpace,
    CameraSpec,
    Embodiment,
    LimitsSource,
    Reference,
)
from vlmcore.contracts.faults import Faults
from vlmcore.contracts.schemas import EMBODIMENT
from vlmcore.contracts.shapes import path_of
from vlmcore.limits import ContractLimits

__all__ = ["embodiment_from_document", "embodiment_to_document"]

_LIMITS = ContractLimits()
_VECTORS = ("action_min", "action_max", "max_delta_per_step")
_POSITIONS = ("position_min", "position_max")
_MAPS = ("units", "references", "max_rates", "periods", "levels", *_POSITIONS)


def embodiment_to_document(embodiment: Embodiment) -> dict[str, Any]:
    """
    Write *embodiment* as a document, in plain values of JSON.

    What the keys of old cannot say has keys of its own, which are there only where a reader of old
    would take it for something else.
    """
    dims, mode = embodiment.actions.dims, embodiment.action_mode
    written = {
        **EMBODIMENT.header(),
        "name": embodiment.name,
        "state_names": list(embodiment.state_names),
        "action_names": list(embodiment.actions.names),
        "action_min": embodiment.actions.low.tolist(),
        "action_max": embodiment.actions.high.tolist(),
        "max_delta_per_step": [
            step if math.isfinite(step) else min(dim.high - dim.low, sys.float_info.max)
            for dim, step in zip(dims, embodiment.actions.max_step.tolist(), strict=True)
        ],
        "control_hz": embodiment.actions.rate_hz,
        "action_mode": mode,
        "camera_names": list(embodiment.camera_names),
        "notes": embodiment.notes,
    }
    source = embodiment.limits_source
    more: dict[str, Any] = {
        "limits_source": None if source is LimitsSource.TEMPLATE else source.value,
        "action_units": {dim.name: dim.unit for dim in dims if dim.unit},
        "action_references": {
            dim.name: dim.reference.value
            for dim in dims
            if dim.reference is not reference_of(mode, dim.name)
        },
        "action_max_rates": {dim.name: dim.max_rate for dim in dims if dim.max_rate is not None},
        "action_periods": {dim.name: dim.period for dim in dims if dim.period is not None},
        "action_levels": {dim.name: list(dim.levels) for dim in dims if dim.levels is not None},
        "action_position_min": {
            dim.name: dim.position_low for dim in dims if dim.position_low is not None
        },
        "action_position_max": {
            dim.name: dim.position_high for dim in dims if dim.position_high is not None
        },
        "action_steps_unbounded": [
            dim.name
            for dim in dims
            if dim.max_step is None and dim.max_rate is None and dim.rotation is None
        ],
        "action_rotations": rotations_to_document(embodiment.actions),
        "camera_sizes": {
            camera.name: [camera.height_px, camera.width_px]
            for camera in embodiment.cameras
            if camera.height_px is not None
        },
    }
    return written | {key: value for key, value in more.items() if value}


def embodiment_from_document(value: Any) -> Embodiment:
    """
    Read an embodiment from a document, in plain values of JSON.

    Documents of old load: the numbers of a mode with the word "delta" are changes and those of one
    with "velocity" rates, grippers excepted, and limits that say nothing of where they come from
    are those of a template. A mode that can be read in two ways, as "position, not delta", is a
    fault unless ``action_references`` says it.

    Raises:
        DocumentError: If there are faults; all of them are listed.
    """
    faults = Faults(EMBODIMENT.name)
    data = EMBODIMENT.read(value, faults)
    _check_names(data, value, faults)
    rotations, rotation_of = read_rotations(data, faults)
    dims: tuple[ActionDim, ...] = ()
    step_key = "max_delta" if isinstance(value, dict) and "max_delta" in value else _VECTORS[2]
    _check_lengths(data, step_key, faults)
    if {"action_names", "action_mode", *_VECTORS} <= data.keys():
        dims = _read_dims(data, step_key, rotation_of, faults)
    cameras = _read_cameras(data, faults)
    return faults.finish(
        lambda: Embodiment(
            name=data["name"],
            state_names=data["state_names"],
            actions=ActionSpace(dims=dims, rate_hz=data["control_hz"], rotations=rotations),
            cameras=cameras,
            limits_source=LimitsSource(data.get("limits_source", "template")),
            action_mode=data["action_mode"],
            notes=data.get("notes", ""),
        ),
        max_rate="$.action_max_rates",
        notes="$.notes",
        rotations="$.action_rotations",
        max_rate_rad_s="$.action_rotations",
    )


def _check_names(data: Mapping[str, Any], came: Any, faults: Faults) -> None:
    longest = _LIMITS.max_name_characters
    for key in ("name", "action_mode"):
        with faults.at(f"$.{key}"):
            require_name(key, data.get(key, ""), max_characters=longest, may_be_empty=True)
    for key in ("state_names", "action_names", "camera_names"):
        if key in data:
            with faults.at(f"$.{key}", **{key: f"$.{key}"}):
                most = len(data[key])  # the table has looked at the number of them
                require_names(key, tuple(data[key]), max_count=most, max_characters=longest)
        elif isinstance(came, dict) and isinstance(came.get(key), list):
            _check_twice(key, came[key], faults)  # some of them are no names, and are told
    if "action_names" in data:
        known = set(data["action_names"])
        for key in (*(f"action_{kind}" for kind in _MAPS), "action_steps_unbounded"):
            for name in data.get(key, ()):
                if name not in known:
                    faults.add(path_of(f"$.{key}", name), "is not one of action_names")


def _check_twice(key: str, names: list[Any], faults: Faults) -> None:
    seen: set[str] = set()
    for i, name in enumerate(names):
        if isinstance(name, str) and name.strip():
            if name in seen:
                faults.add(f"$.{key}[{i}]", f"got {shown(name)} twice")
            seen.add(name)


def _check_lengths(data: Mapping[str, Any], step_key: str, faults: Faults) -> None:
    for key in _VECTORS:
        if {"action_names", key} <= data.keys():
            count, actions = len(data[key]), len(data["action_names"])
            if count != actions:
                path = f"$.{step_key if key == _VECTORS[2] else key}"
                faults.add(path, f"got {count} numbers, expected one an action, {actions}")


def _references(data: Mapping[str, Any], faults: Faults) -> dict[str, Reference]:
    """Say what the numbers of each action are; of old documents by the words of their mode."""
    mode, said = data["action_mode"], data.get("action_references", {})
    found = {name: reference_of(mode, name) for name in data["action_names"]}
    found |= {name: Reference(word) for name, word in said.items()}
    if None in found.values():
        unsaid = ", ".join(name for name, reference in found.items() if reference is None)
        words = ", ".join(reference.value for reference in Reference)
        faults.add(
            "$.action_mode",
            f"got {shown(mode)}, which can be read in two ways: say in action_references what "
            f"these are, one of {words}: {unsaid:.80}",
        )
    return {name: reference or Reference.ABSOLUTE for name, reference in found.items()}


def _read_dims(
    data: Mapping[str, Any], step_key: str, rotation_of: Mapping[str, str], faults: Faults
) -> tuple[ActionDim, ...]:
    references = _references(data, faults)
    said: dict[str, Mapping[str, Any]] = {kind: data.get(f"action_{kind}", {}) for kind in _MAPS}
    unbounded = {*data.get("action_steps_unbounded", ()), *rotation_of}
    dims = []
    rows = zip(data["action_names"], *(data[key] for key in _VECTORS), strict=False)
    for i, (name, low, high, step) in enumerate(rows):
        rate, levels = said["max_rates"].get(name), said["levels"].get(name)
        places = _places(i, name, step_key)
        if rate is not None:
            _check_rate(rate, step, data, places["max_step"], faults)
        with faults.at(f"$.action_names[{i}]", **places):
            dims.append(
                ActionDim(
                    name=name,
                    unit=said["units"].get(name, ""),
                    reference=references[name],
                    low=low,
                    high=high,
                    max_step=None if rate is not None or name in unbounded else step,
                    max_rate=rate,
                    period=said["periods"].get(name),
                    levels=None if levels is None else tuple(levels),
                    position_low=said["position_min"].get(name),
                    position_high=said["position_max"].get(name),
                    rotation=rotation_of.get(name),
                )
            )
    return tuple(dims)


def _places(i: int, name: str, step_key: str) -> dict[str, str]:
    """Say where the fields of the dimension *i* stand in the document."""
    by_name = {
        "unit": "units",
        "max_rate": "max_rates",
        "period": "periods",
        "levels": "levels",
        **dict(zip(("position_low", "position_high"), _POSITIONS, strict=True)),
    }
    return {
        "low": f"$.action_min[{i}]",
        "high": f"$.action_max[{i}]",
        "max_step": f"$.{step_key}[{i}]",
        "rotation": "$.action_rotations",
        **{field: path_of(f"$.action_{kind}", name) for field, kind in by_name.items()},
    }


def _check_rate(
    rate: float, step: float, data: Mapping[str, Any], path: str, faults: Faults
) -> None:
    """Check that what readers of old take for the step is what the rate makes of it."""
    wanted = rate / data.get("control_hz", math.nan)
    if math.isfinite(wanted) and not math.isclose(step, wanted, rel_tol=1e-9):
        faults.add(path, f"got {step:g}, expected {wanted:g}: action_max_rates over control_hz")


def _read_cameras(data: Mapping[str, Any], faults: Faults) -> tuple[CameraSpec, ...]:
    if "camera_names" not in data:
        return ()
    sizes: Mapping[str, Any] = data.get("camera_sizes", {})
    for name in sizes:
        if name not in data["camera_names"]:
            faults.add(path_of("$.camera_sizes", name), "is not one of camera_names")
    cameras = []
    for name in data["camera_names"]:
        height, width = sizes.get(name, (None, None))
        with faults.at(path_of("$.camera_sizes", name)):
            cameras.append(CameraSpec(name=name, height_px=height, width_px=width))
    return tuple(cameras)
