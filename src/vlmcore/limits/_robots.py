"""The contracts of robots, their documents, recordings and pictures."""

from __future__ import annotations

import attrs

from vlmcore.limits._base import MIB, Bounds

__all__ = [
    "ChartLimits",
    "ContractLimits",
    "DatasetLimits",
    "DocumentLimits",
    "EpisodeLimits",
]


@attrs.frozen(kw_only=True)
class ContractLimits(Bounds):
    """
    How large the contracts of robots are, so that what reads them can count on it.

    Attributes:
        max_task_characters: Characters of the instruction of an observation.
        max_notes_characters: Characters of the notes of an embodiment.
        max_name_characters: Characters of a name: of a camera, a dimension, a robot, a policy.
        max_state: Numbers in the state of an observation.
        max_actions: Dimensions of an action.
        max_levels: Positions of a dimension that knows only some, as a gripper.
        max_horizon: Steps of an action chunk.
        max_cameras: Cameras of an observation.
        max_frames: Frames of history of a camera.
        max_frame_pixels: Width times height of one frame.
        max_rate_hz: Rate of control.
    """

    max_task_characters: int = 16_384
    max_notes_characters: int = 16_384
    max_name_characters: int = 256
    max_state: int = 2048
    max_actions: int = 2048
    max_levels: int = 256
    max_horizon: int = 4096
    max_cameras: int = 16
    max_frames: int = 256
    max_frame_pixels: int = 16 * MIB
    max_rate_hz: int = 10_000


@attrs.frozen(kw_only=True)
class ChartLimits(Bounds):
    """
    How large pictures of chunks get, whatever the chunk.

    Attributes:
        min_width_px: Width below which nothing is legible.
        min_height_px: Height below which nothing is legible.
        max_side_px: Width, and height.
        max_drawn_pixels: Pixels that are drawn before they are made fewer, which smooths lines.
        max_panels: Dimensions that have a panel of their own; the others are counted.
        min_panel_px: Height of a panel below which it is not drawn.
    """

    min_width_px: int = 200
    min_height_px: int = 160
    max_side_px: int = 4096
    max_drawn_pixels: int = 24 * MIB
    max_panels: int = 64
    min_panel_px: int = 44


@attrs.frozen(kw_only=True)
class DocumentLimits(Bounds):
    """
    What the door of JSON documents lets in.

    Attributes:
        max_document_bytes: Size of the text. A chunk of 4,096 steps of 64 dimensions fits.
        max_depth: Objects and lists inside each other.
        max_nodes: Values in the document, those in lists and objects counted.
        max_faults: Faults that are listed.
        max_error_characters: Characters of a text of somebody else's that an error shows.
    """

    max_document_bytes: int = 32 * MIB
    max_depth: int = 32
    max_nodes: int = 2 * MIB
    max_faults: int = 100
    max_error_characters: int = 1000


@attrs.frozen(kw_only=True)
class EpisodeLimits(Bounds):
    """
    What the door of recorded episodes lets in, line by line, and what is written.

    Attributes:
        max_file_bytes: Size of the file. It is read line by line and never held whole.
        max_line_bytes: Size of one line. The frames of an observation and its chunk fit.
        max_steps: Steps of an episode.
        max_depth: Objects and lists inside each other in one line: metadata of the largest depth
            inside a chunk inside a step.
        max_nodes: Values in one line, those in lists and objects counted.
        max_frame_bytes: Size of one encoded frame.
        max_frames_bytes: Size of all encoded frames of one observation.
    """

    max_file_bytes: int = 65_536 * MIB
    max_line_bytes: int = 96 * MIB
    max_steps: int = 1 << 20
    max_depth: int = 40
    max_nodes: int = 4 * MIB
    max_frame_bytes: int = 8 * MIB
    max_frames_bytes: int = 45 * MIB

    @property
    def of_a_line(self) -> DocumentLimits:
        """The limits of one line, as of a document."""
        return DocumentLimits(
            max_document_bytes=self.max_line_bytes,
            max_depth=self.max_depth,
            max_nodes=self.max_nodes,
        )


@attrs.frozen(kw_only=True)
class DatasetLimits(Bounds):
    """
    What is read of a data set of robot episodes: tables, videos, and what is said about them.

    Attributes:
        max_info_bytes: Size of what a data set says about itself in JSON.
        max_file_bytes: Size of one file of it. Tables and videos are never held whole.
        max_footer_bytes: Size of one text or list in the footer of a table.
        max_page_bytes: What a page of a table may unpack to beyond its size in the file.
        max_files: Files of episodes that are listed.
        max_episodes: Episodes.
        max_rows: Rows of all episodes together.
        max_tasks: Instructions.
        max_features: What a row may hold.
        max_frame_bytes: Size of one encoded picture in a table.
        max_frame_pixels: Width times height of a frame.
    """

    max_info_bytes: int = 4 * MIB
    max_file_bytes: int = 65_536 * MIB
    max_footer_bytes: int = 64 * MIB
    max_page_bytes: int = 64 * MIB
    max_files: int = 1 << 16
    max_episodes: int = 1 << 20
    max_rows: int = 1 << 40
    max_tasks: int = 1 << 16
    max_features: int = 256
    max_frame_bytes: int = 16 * MIB
    max_frame_pixels: int = 16 * MIB

    @property
    def of_files(self) -> EpisodeLimits:
        """The limits of one file, as of an episode."""
        return EpisodeLimits(max_file_bytes=self.max_file_bytes)
