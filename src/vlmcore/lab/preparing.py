"""What a case of a suite is shown to a model as, and the record of that."""

from __future__ import annotations

import hashlib

import attrs

from vlmcore._arrays import UInt8Array
from vlmcore.lab.inputs import Input, Media, pixels_sha256
from vlmcore.lab.suites import Case, Suite
from vlmcore.media.budgets import PixelBudget
from vlmcore.media.images import load_image
from vlmcore.media.selections import FrameSampling, SamplingStrategy
from vlmcore.media.video import open_video, sample_video
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.remote.pictures import PictureRules

__all__ = ["input_of", "prompt_of", "shown_at"]


def shown_at(case: Case, longest_edge_px: int | None) -> Case:
    """
    Give the case with its pictures as small as a target is shown them, if that is smaller.

    Args:
        case: A case of a suite.
        longest_edge_px: What the target is shown at most; ``None`` for what the case says.
    """
    edges = [edge for edge in (case.longest_edge_px, longest_edge_px) if edge is not None]
    return attrs.evolve(case, longest_edge_px=min(edges)) if edges else case


def prompt_of(suite: Suite, case: Case, *, nonce: str = "") -> Prompt:
    """
    Read the image or the video of a case, make it as small as the case says, and ask about it.

    Args:
        suite: The suite, with its folder.
        case: One of its cases.
        nonce: A text that stands before everything else, so that nothing of an earlier prompt is
            known; empty for none.

    Raises:
        MediaError: If the image or the video cannot be read.
        MissingDependencyError: If what reads it is not installed.
    """
    system = "\n".join(part for part in (nonce, case.system) if part)
    budget = PixelBudget(longest_edge_px=case.longest_edge_px)
    path = suite.path_of(case)
    if case.frames is None:
        image = budget.apply(load_image(path))
        return Prompt(text=case.prompt, system=system, images=(image,))
    sampling = FrameSampling(
        max_frames=case.frames, strategy=SamplingStrategy.UNIFORM, minimum_gap_s=0.0
    )
    video = sample_video(path, sampling, budget=budget)
    return Prompt.of_video(case.prompt, video, system=system)


def input_of(suite: Suite, case: Case, *, target: str, rules: PictureRules | None) -> Input:
    """
    Say what a target is given for a case, without asking it.

    Args:
        suite: The suite, with its folder.
        case: One of its cases.
        target: The name of the target.
        rules: How pictures are sent to it; ``None`` for a model in this process.

    Raises:
        MediaError: If the image or the video cannot be read, or sent so.
        MissingDependencyError: If what reads or encodes it is not installed.
    """
    prompt = prompt_of(suite, case)
    stored = _stored_px(suite, case)
    if prompt.video is None:
        given = [prompt.images[0]]
    else:  # a server is sent each frame by itself
        given = [prompt.video] if rules is None else list(prompt.video)
    words = "\n\n".join(part for part in (prompt.system, prompt.text) if part)
    return Input(
        target=target,
        case=case.name,
        prompt_sha256=hashlib.sha256(words.encode()).hexdigest(),
        media=tuple(_media(pixels, stored, rules, len(given)) for pixels in given),
    )


def _stored_px(suite: Suite, case: Case) -> tuple[int, int]:
    """Return height and width of what the file holds, as it is seen."""
    path = suite.path_of(case)
    if case.frames is None:
        height, width = load_image(path).shape[:2]
        return height, width
    with open_video(path) as video:
        return video.info.height_px, video.info.width_px


def _media(
    pixels: UInt8Array, stored: tuple[int, int], rules: PictureRules | None, pictures: int
) -> Media:
    *frames, height, width, _ = pixels.shape
    media = Media(
        stored_height_px=stored[0],
        stored_width_px=stored[1],
        height_px=height,
        width_px=width,
        frames=frames[0] if frames else 1,
        pixels_sha256=pixels_sha256(pixels),
    )
    if rules is None:
        return media
    sent = rules.encode(pixels, pictures=pictures)
    return attrs.evolve(
        media, encoder=_encoder(rules), sent_sha256=hashlib.sha256(sent).hexdigest()
    )


def _encoder(rules: PictureRules) -> str:
    name = rules.format.name
    quality = f", quality {rules.quality} or lower to fit" if name == "JPEG" else ""
    return f"{name}{quality}, by vlmcore"
