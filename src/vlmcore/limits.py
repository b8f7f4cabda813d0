"""
Every bound on what comes in from outside, grouped by the door that it guards.

Limits guard doors, not rooms: contracts check that a value is true, doors check that it is not too
large, before memory is spent on it. A caller who needs other bounds passes a group of their own.
"""

from __future__ import annotations

import attrs

from vlmcore.errors import ContractError, LimitExceededError

__all__ = [
    "ChartLimits",
    "ContractLimits",
    "DatasetLimits",
    "DocumentLimits",
    "EpisodeLimits",
    "HttpLimits",
    "ImageLimits",
    "ModelLimits",
    "MusicLimits",
    "PromptLimits",
    "WireLimits",
    "require_at_most",
]

_MIB = 1 << 20


def require_at_most(limit: str, actual: int, allowed: int) -> None:
    """
    Refuse a size over its limit.

    Raises:
        LimitExceededError: If *actual* is larger than *allowed*.
    """
    if actual > allowed:
        raise LimitExceededError(limit, actual, allowed)


@attrs.frozen(kw_only=True)
class _Bounds:
    """A group of bounds: whole numbers of at least 1."""

    def __attrs_post_init__(self) -> None:
        for field in attrs.fields(type(self)):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ContractError(
                    field.name, f"got {value!r}, expected a whole number of at least 1"
                )


@attrs.frozen(kw_only=True)
class ContractLimits(_Bounds):
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
    max_frame_pixels: int = 16 * _MIB
    max_rate_hz: int = 10_000


@attrs.frozen(kw_only=True)
class ChartLimits(_Bounds):
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
    max_drawn_pixels: int = 24 * _MIB
    max_panels: int = 64
    min_panel_px: int = 44


@attrs.frozen(kw_only=True)
class DocumentLimits(_Bounds):
    """
    What the door of JSON documents lets in.

    Attributes:
        max_document_bytes: Size of the text. A chunk of 4,096 steps of 64 dimensions fits.
        max_depth: Objects and lists inside each other.
        max_nodes: Values in the document, those in lists and objects counted.
        max_faults: Faults that are listed.
        max_error_characters: Characters of a text of somebody else's that an error shows.
    """

    max_document_bytes: int = 32 * _MIB
    max_depth: int = 32
    max_nodes: int = 2 * _MIB
    max_faults: int = 100
    max_error_characters: int = 1000


@attrs.frozen(kw_only=True)
class EpisodeLimits(_Bounds):
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

    max_file_bytes: int = 65_536 * _MIB
    max_line_bytes: int = 96 * _MIB
    max_steps: int = 1 << 20
    max_depth: int = 40
    max_nodes: int = 4 * _MIB
    max_frame_bytes: int = 8 * _MIB
    max_frames_bytes: int = 45 * _MIB

    @property
    def of_a_line(self) -> DocumentLimits:
        """The limits of one line, as of a document."""
        return DocumentLimits(
            max_document_bytes=self.max_line_bytes,
            max_depth=self.max_depth,
            max_nodes=self.max_nodes,
        )


@attrs.frozen(kw_only=True)
class DatasetLimits(_Bounds):
    """
    What is read of a data set of robot episodes: tables, videos, and what is said about them.

    Attributes:
        max_info_bytes: Size of what a data set says about itself in JSON.
        max_file_bytes: Size of one file of it. Tables and videos are never held whole.
        max_footer_bytes: Size of one text or list in the footer of a table.
        max_files: Files of episodes that are listed.
        max_episodes: Episodes.
        max_rows: Rows of all episodes together.
        max_tasks: Instructions.
        max_features: What a row may hold.
        max_frame_bytes: Size of one encoded picture in a table.
        max_frame_pixels: Width times height of a frame.
    """

    max_info_bytes: int = 4 * _MIB
    max_file_bytes: int = 65_536 * _MIB
    max_footer_bytes: int = 64 * _MIB
    max_files: int = 1 << 16
    max_episodes: int = 1 << 20
    max_rows: int = 1 << 40
    max_tasks: int = 1 << 16
    max_features: int = 256
    max_frame_bytes: int = 16 * _MIB
    max_frame_pixels: int = 16 * _MIB

    @property
    def of_files(self) -> EpisodeLimits:
        """The limits of one file, as of an episode."""
        return EpisodeLimits(max_file_bytes=self.max_file_bytes)


@attrs.frozen(kw_only=True)
class ImageLimits(_Bounds):
    """
    What the image door lets in.

    Attributes:
        max_pixels: Width times height of one frame, read from the header before decoding.
            16 Mi pixels: a 4096 x 4096 picture, 48 MiB once decoded.
        max_encoded_bytes: Size of the encoded file. An uncompressed 16-bit RGBA picture of
            `max_pixels` pixels just fits.
        max_frames: Frames of an animation that is read as video.
        max_animation_pixels: Width times height times frames of such an animation; 384 MiB once
            decoded.
        max_blocks: Parts of a file that are looked at one by one: the chunks of a PNG, the segments
            of a JPEG, the blocks of a GIF, the strips or tiles of a TIFF.
        max_scans: Passes of a progressive JPEG. Each costs as much time as decoding the whole
            picture and only a few bytes; encoders write about ten.
    """

    max_pixels: int = 16 * _MIB
    max_encoded_bytes: int = 144 * _MIB
    max_frames: int = 256
    max_animation_pixels: int = 128 * _MIB
    max_blocks: int = 1 << 16
    max_scans: int = 64


@attrs.frozen(kw_only=True)
class PromptLimits(_Bounds):
    """
    What one prompt may hold.

    Attributes:
        max_text_characters: Characters of the text and of the system text, each.
        max_images: Images beside the text.
        max_video_frames: Frames of the video.
        max_new_tokens: Tokens of an answer that may be asked for.
    """

    max_text_characters: int = 1 << 20
    max_images: int = 256
    max_video_frames: int = 1024
    max_new_tokens: int = 1 << 20


@attrs.frozen(kw_only=True)
class ModelLimits(_Bounds):
    """
    What is read of a model's files to find out what they are.

    Attributes:
        max_config_bytes: Size of a ``config.json``. Those of large models have some 100 KiB.
        max_index_bytes: Size of the index that says which file holds which weight.
        max_header_bytes: Size of the header of one file of weights; the bound of safetensors.
    """

    max_config_bytes: int = 4 * _MIB
    max_index_bytes: int = 64 * _MIB
    max_header_bytes: int = 100 * _MIB


@attrs.frozen(kw_only=True)
class WireLimits(_Bounds):
    """
    What one message of a policy or of its caller may hold, read from the wire or written to it.

    Attributes:
        max_request_bytes: Size of a request. Pixels are not compressed: one frame of 480 x 640 is
            0.9 MiB.
        max_response_bytes: Size of an answer.
        max_metadata_bytes: Size of what a server says about itself before it is asked.
        max_depth: Maps and lists inside each other.
        max_nodes: Values in a message, keys counted; an array of numbers is a handful. Empty lists
            take 56 times the memory of their bytes.
        max_entries: Entries of one map or one list.
        max_text_bytes: Size of all its texts together; it takes up to four times as much once read.
        max_binary_bytes: Size of the bytes of one array.
        max_rank: Axes of an array.
        max_array_header_bytes: Size of the header of an array in NumPy's own file format.
    """

    max_request_bytes: int = 128 * _MIB
    max_response_bytes: int = 32 * _MIB
    max_metadata_bytes: int = _MIB
    max_depth: int = 16
    max_nodes: int = 1 << 16
    max_entries: int = 1 << 16
    max_text_bytes: int = _MIB
    max_binary_bytes: int = 128 * _MIB
    max_rank: int = 6
    max_array_header_bytes: int = 1024


@attrs.frozen(kw_only=True)
class HttpLimits(_Bounds):
    """
    What one message of the HTTP protocol may hold, read from the wire or written to it.

    Attributes:
        max_request_bytes: Size of the body of a request.
        max_response_bytes: Size of the body of an answer.
        max_metadata_bytes: Size of what a server says about itself.
        max_head_bytes: Size of all headers of a message together.
        max_frame_bytes: Size of one encoded frame.
        max_frames_bytes: Size of all encoded frames of one observation.
        max_frame_pixels: Width times height of one frame, read from its header before decoding.
        max_decoded_bytes: Size of all frames of one observation once decoded; three cameras of
            480 x 640 have 2.6 MiB for each step of their history.
    """

    max_request_bytes: int = 64 * _MIB
    max_response_bytes: int = 32 * _MIB
    max_metadata_bytes: int = _MIB
    max_head_bytes: int = 16_384
    max_frame_bytes: int = 8 * _MIB
    max_frames_bytes: int = 45 * _MIB
    max_frame_pixels: int = 16 * _MIB
    max_decoded_bytes: int = 64 * _MIB


@attrs.frozen(kw_only=True)
class MusicLimits(_Bounds):
    """
    What is sent to a service that makes music, and what of its answers is read.

    Attributes:
        max_reference_bytes: Size of the recording that a cover is made of.
        max_audio_bytes: Size of the encoded audio that comes, however it comes.
        max_answer_bytes: Size of a whole answer: the audio in hex, twice, and what is said of it.
        max_event_bytes: Size of one event of a stream, or of an answer, without its audio.
        max_head_bytes: Size of the headers of an answer.
        max_url_characters: Characters of an address of audio.
        max_decoded_bytes: Size of a clip once decoded; half an hour in stereo has 0.6 GiB.
        max_seed: The largest seed of a cover.
    """

    max_reference_bytes: int = 50_000_000
    max_audio_bytes: int = 128 * _MIB
    max_answer_bytes: int = 640 * _MIB
    max_event_bytes: int = _MIB
    max_head_bytes: int = 65_536
    max_url_characters: int = 8192
    max_decoded_bytes: int = 2048 * _MIB
    max_seed: int = 1_000_000
