"""Images, prompts, models and their weights."""

from __future__ import annotations

import attrs

from vlmcore.limits._base import MIB, Bounds

__all__ = [
    "DetectorLimits",
    "ImageLimits",
    "ModelLimits",
    "PromptLimits",
    "ReuseLimits",
    "StructureLimits",
    "VisionLimits",
    "WeightLimits",
]


@attrs.frozen(kw_only=True)
class ImageLimits(Bounds):
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

    max_pixels: int = 16 * MIB
    max_encoded_bytes: int = 144 * MIB
    max_frames: int = 256
    max_animation_pixels: int = 128 * MIB
    max_blocks: int = 1 << 16
    max_scans: int = 64


@attrs.frozen(kw_only=True)
class PromptLimits(Bounds):
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
class ReuseLimits(Bounds):
    """
    What a model in this process keeps for answers to come; the least recently used leaves first.

    Attributes:
        max_vision_bytes: What the vision tower made of pictures.
        max_prefix_bytes: Keys and values of prompts.
    """

    max_vision_bytes: int = 256 * MIB
    max_prefix_bytes: int = 512 * MIB


@attrs.frozen(kw_only=True)
class StructureLimits(Bounds):
    """
    What a schema may hold, and what of an answer in JSON is read.

    Attributes:
        max_schema_bytes: Size of a schema.
        max_schema_depth: Objects and lists inside each other in a schema.
        max_schema_nodes: Values in a schema.
        max_pattern_characters: Characters of a pattern for texts.
        max_pattern_steps: Steps that one pattern may take on one text.
        max_answer_bytes: Size of an answer.
        max_answer_depth: Objects and lists inside each other in an answer.
        max_answer_nodes: Values in an answer.
        max_validation_steps: Keywords that are applied to values of one answer.
        max_faults: Faults of an answer that are listed.
        max_quoted_characters: Characters of a wrong answer that are sent back to be mended.
    """

    max_schema_bytes: int = 1 << 18
    max_schema_depth: int = 32
    max_schema_nodes: int = 4096
    max_pattern_characters: int = 512
    max_pattern_steps: int = 1 << 26
    max_answer_bytes: int = 4 * MIB
    max_answer_depth: int = 32
    max_answer_nodes: int = 1 << 16
    max_validation_steps: int = 1 << 17
    max_faults: int = 20
    max_quoted_characters: int = 16_000


@attrs.frozen(kw_only=True)
class VisionLimits(Bounds):
    """
    What is read of a model's answer about places in an image, or about a video.

    Attributes:
        max_text_characters: Characters of the answer.
        max_nodes: Values in an answer in JSON.
        max_detections: Boxes, points and polygons together.
        max_tracks: Things that are followed through a video.
        max_events: Things that happen in one.
        max_event_characters: Characters of what happens.
        max_corners: Corners of one polygon.
        max_label_characters: Characters of a label.
        max_side_px: Width, and height, of an image.
        max_faults: Faults that are listed.
    """

    max_text_characters: int = 1 << 20
    max_nodes: int = 1 << 17
    max_detections: int = 4096
    max_tracks: int = 4096
    max_events: int = 4096
    max_event_characters: int = 2000
    max_corners: int = 4096
    max_label_characters: int = 1024
    max_side_px: int = 1 << 20
    max_faults: int = 100


@attrs.frozen(kw_only=True)
class DetectorLimits(Bounds):
    """
    What a detector is asked for, and what it says of its images.

    Attributes:
        max_labels: Labels that are looked for at once.
        max_label_characters: Characters of a label.
        max_detections: Detections of one image that are given back.
        max_batch_size: Images that go through the model at once.
        max_input_side_px: Width, and height, that a model has images scaled to.
    """

    max_labels: int = 1000
    max_label_characters: int = 256
    max_detections: int = 1000
    max_batch_size: int = 64
    max_input_side_px: int = 4096


@attrs.frozen(kw_only=True)
class ModelLimits(Bounds):
    """
    What is read of a model's files to find out what they are.

    Attributes:
        max_config_bytes: Size of a ``config.json``. Those of large models have some 100 KiB.
        max_index_bytes: Size of the index that says which file holds which weight.
        max_header_bytes: Size of the header of one file of weights; the bound of safetensors.
    """

    max_config_bytes: int = 4 * MIB
    max_index_bytes: int = 64 * MIB
    max_header_bytes: int = 100 * MIB


@attrs.frozen(kw_only=True)
class WeightLimits(Bounds):
    """
    What is read of files of weights before any of the weights.

    Attributes:
        max_files: Files of one checkpoint.
        max_tensors: Tensors of one checkpoint, in all its files.
        max_header_bytes: Size of the header or the footer of one file, and of the index of several.
        max_metadata_bytes: Size of what a header says beside the tensors.
        max_name_characters: Characters of the name of a tensor.
        max_rank: Axes of a tensor.
        max_blocks: Macroblocks of a pack.
        max_manifest_bytes: Size of the manifest beside a pack.
    """

    max_files: int = 4096
    max_tensors: int = 1 << 17
    max_header_bytes: int = 16 * MIB
    max_metadata_bytes: int = 2 * MIB
    max_name_characters: int = 1024
    max_rank: int = 64
    max_blocks: int = 256
    max_manifest_bytes: int = 64 * MIB

    @classmethod
    def for_tensors(cls, count: int) -> WeightLimits:
        """
        Let in a checkpoint of *count* tensors: as much is read for each as by default.

        Example:
            >>> limits = WeightLimits.for_tensors(1 << 18)
            >>> limits.max_tensors, limits.max_header_bytes == 2 * WeightLimits().max_header_bytes
            (262144, True)
        """
        usual = cls()
        if not isinstance(count, int) or count <= usual.max_tensors:
            return cls(max_tensors=count)
        return cls(
            max_tensors=count,
            max_header_bytes=usual.max_header_bytes * count // usual.max_tensors,
            max_manifest_bytes=usual.max_manifest_bytes * count // usual.max_tensors,
        )
