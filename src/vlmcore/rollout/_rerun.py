"""Recordings of Rerun: columns of values on the timelines of an episode, and how they are shown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

import rerun
import rerun.blueprint

__all__ = ["Colour", "Moment", "Recording", "entity_of"]

Colour: TypeAlias = tuple[int, int, int]
#: Control steps since the start of the episode, and a reading of its monotonic clock in seconds.
Moment: TypeAlias = tuple[int, float]

_APPLICATION = "vlmcore"
_HELD = 4000  # values of a series that wait to be written together: one by one is slow
_PLOTS = 64  # more than a person looks at; all series are in the recording


def entity_of(*names: str) -> str:
    """Write names as a path; what has a meaning in paths is escaped."""
    return "".join(f"/{rerun.escape_entity_path_part(name)}" for name in names)


class Recording:
    """A recording that is being written to a file."""

    def __init__(self, path: Path, *, name: str) -> None:
        self._stream = rerun.RecordingStream(_APPLICATION)
        self._stream.save(path)
        self._stream.send_recording_name(name)
        self._moments: dict[str, list[Moment]] = defaultdict(list)
        self._values: dict[str, list[float]] = defaultdict(list)

    def __enter__(self) -> Recording:
        """Take itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write what waits, and close the file."""
        for entity in list(self._values) if kind is None else ():
            self._write(entity)
        self._stream.flush()
        self._stream.disconnect()

    def line(
        self, entity: str, *, name: str, colour: Colour | None = None, width: float = 1.5
    ) -> None:
        """Say that the values at *entity* are drawn as a line; the viewer chooses a colour."""
        style = rerun.SeriesLines(names=name, colors=colour, widths=width)
        self._stream.log(entity, style, static=True, strict=True)

    def points(self, entity: str, *, name: str, colour: Colour, marker: str, size: float) -> None:
        """Say that the values at *entity* are drawn as points."""
        style = rerun.SeriesPoints(names=name, colors=colour, markers=marker, marker_sizes=size)
        self._stream.log(entity, style, static=True, strict=True)

    def values(self, entity: str, moments: Sequence[Moment], values: Iterable[float]) -> None:
        """Add values to a series."""
        self._moments[entity] += moments
        self._values[entity] += values
        if len(self._values[entity]) >= _HELD:
            self._write(entity)

    def note(self, entity: str, text: str) -> None:
        """Write a text that holds for the whole episode."""
        document = rerun.TextDocument(text, media_type="text/markdown")
        self._stream.log(entity, document, static=True, strict=True)

    def text(self, entity: str, moment: Moment, text: str) -> None:
        """Write a text that holds from a moment on."""
        self._send(entity, [moment], rerun.TextDocument.columns(text=[text]))

    def event(self, entity: str, moment: Moment, text: str, *, level: str) -> None:
        """Write a line of a log; *level* is one of Rerun's, as ``"WARN"``."""
        self._send(entity, [moment], rerun.TextLog.columns(text=[text], level=[level]))

    def image(self, entity: str, moment: Moment, data: bytes, *, media_type: str) -> None:
        """Show an encoded image from a moment on."""
        columns = rerun.EncodedImage.columns(blob=[data], media_type=[media_type])
        self._send(entity, [moment], columns)

    def layout(
        self,
        *,
        cameras: Sequence[str],
        plots: Sequence[tuple[str, str]],
        texts: Sequence[str],
        log: str,
    ) -> None:
        """
        Say how the viewer shows it.

        Args:
            cameras: The entities of images.
            plots: The names of plots, and the entities above the series of each.
            texts: The entities of texts.
            log: The entity of the log.
        """
        views = rerun.blueprint
        beside = [
            *(views.Spatial2DView(origin=entity) for entity in cameras),
            *(views.TextDocumentView(origin=entity) for entity in texts),
            views.TextLogView(origin=log),
        ]
        series = [views.TimeSeriesView(origin=entity, name=name) for name, entity in plots[:_PLOTS]]
        shown = views.Horizontal(
            views.Vertical(*beside), views.Grid(*series), column_shares=[1.0, 3.0]
        )
        self._stream.send_blueprint(views.Blueprint(shown, collapse_panels=True))

    def _write(self, entity: str) -> None:
        moments, values = self._moments.pop(entity), self._values.pop(entity)
        self._send(entity, moments, rerun.Scalars.columns(scalars=values))

    def _send(self, entity: str, moments: Sequence[Moment], columns: Any) -> None:
        timelines = [
            rerun.TimeColumn("step", sequence=[step for step, _ in moments]),
            rerun.TimeColumn("time", duration=[time_s for _, time_s in moments]),
        ]
        self._stream.send_columns(entity, timelines, columns, strict=True)
