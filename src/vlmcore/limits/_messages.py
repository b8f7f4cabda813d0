"""What comes over a wire."""

from __future__ import annotations

import attrs

from vlmcore.limits._base import MIB, Bounds

__all__ = [
    "HttpLimits",
    "ModelServerLimits",
    "MusicLimits",
    "WireLimits",
]


@attrs.frozen(kw_only=True)
class WireLimits(Bounds):
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

    max_request_bytes: int = 128 * MIB
    max_response_bytes: int = 32 * MIB
    max_metadata_bytes: int = MIB
    max_depth: int = 16
    max_nodes: int = 1 << 16
    max_entries: int = 1 << 16
    max_text_bytes: int = MIB
    max_binary_bytes: int = 128 * MIB
    max_rank: int = 6
    max_array_header_bytes: int = 1024


@attrs.frozen(kw_only=True)
class HttpLimits(Bounds):
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

    max_request_bytes: int = 64 * MIB
    max_response_bytes: int = 32 * MIB
    max_metadata_bytes: int = MIB
    max_head_bytes: int = 16_384
    max_frame_bytes: int = 8 * MIB
    max_frames_bytes: int = 45 * MIB
    max_frame_pixels: int = 16 * MIB
    max_decoded_bytes: int = 64 * MIB


@attrs.frozen(kw_only=True)
class MusicLimits(Bounds):
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
    max_audio_bytes: int = 128 * MIB
    max_answer_bytes: int = 640 * MIB
    max_event_bytes: int = MIB
    max_head_bytes: int = 65_536
    max_url_characters: int = 8192
    max_decoded_bytes: int = 2048 * MIB
    max_seed: int = 1_000_000


@attrs.frozen(kw_only=True)
class ModelServerLimits(Bounds):
    """
    What is sent to a server of models, and what of its answers is read.

    Attributes:
        max_request_bytes: Size of a request; a picture takes a third more than its file.
        max_answer_bytes: Size of a whole answer, with all that is said of it.
        max_event_bytes: Size of one event of a stream.
        max_head_bytes: Size of the headers of an answer.
        max_listed_models: Models that a server says it has.
        max_picture_bytes: Size of one picture, unless a provider takes less.
    """

    max_request_bytes: int = 64 * MIB
    max_answer_bytes: int = 64 * MIB
    max_event_bytes: int = 4 * MIB
    max_head_bytes: int = 65_536
    max_listed_models: int = 10_000
    max_picture_bytes: int = 20_000_000
