"""From prompts to the tensors that a model is given."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import jinja2
import torch
from PIL import Image

from vlmcore._arrays import UInt8Array
from vlmcore.errors import GenerationError
from vlmcore.vlm.answers import opens_reasoning
from vlmcore.vlm.prompt import Prompt

__all__ = ["OF_TEXT", "ModelInputs", "prepare"]

# What processors make of the text; all else is made of what is shown.
OF_TEXT = ("input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids")
_SHORTEST_EDGE_PX = 8
_MOST_ASPECT = 100


@attrs.frozen(eq=False)
class ModelInputs:
    """
    A batch as the model takes it.

    Attributes:
        tensors: Keyword arguments of ``generate``, on the model's device.
        prompt_tokens: Tokens of each prompt, padding not counted.
        in_reasoning: For each prompt, whether it ends inside reasoning.
        pictures: A digest of what the model is shown, from pixels and the processor's settings;
            empty where it is shown nothing, or none was asked for.
    """

    tensors: dict[str, Any]
    prompt_tokens: tuple[int, ...]
    in_reasoning: tuple[bool, ...]
    pictures: bytes = b""


@attrs.frozen(eq=False)
class _Rendered:
    text: str
    images: list[Image.Image]
    video: UInt8Array | None


def prepare(
    prompts: Sequence[Prompt],
    processor: Any,
    *,
    model: str,
    supports_video: bool,
    thinking: bool | None,
    device: torch.device,
    dtype: torch.dtype,
    digests: bool = True,
) -> ModelInputs:
    """
    Render *prompts* with the model's chat template and tokenise them as one left-padded batch.

    Prompts of one batch must be alike: all with images or none, all with a video or none.

    Args:
        prompts: What to ask.
        processor: The model's processor.
        model: The model's name, for errors.
        supports_video: Whether the processor takes videos. If not, frames are given as images.
        thinking: Asks templates that know ``enable_thinking`` for reasoning, or against it.
        device: Where the tensors go.
        dtype: The dtype of pixel values.
        digests: Whether to digest what is shown, by which it is known when it comes again.

    Raises:
        GenerationError: If the template or the processor refuses a prompt.
    """
    try:
        rendered = [
            _render(prompt, processor, supports_video=supports_video, thinking=thinking)
            for prompt in prompts
        ]
        batch = _tokenise(rendered, prompts, processor)
    except (jinja2.TemplateError, ValueError, TypeError, KeyError, IndexError) as error:
        raise GenerationError(
            model, f"its processor refuses the prompt ({type(error).__name__}: {error})"
        ) from error
    tensors = {name: _placed(value, device, dtype) for name, value in batch.items()}
    shown = {name: value for name, value in batch.items() if name not in OF_TEXT}
    ids, mask = tensors["input_ids"], tensors.get("attention_mask")
    counts = [ids.shape[1]] * len(ids) if mask is None else mask.sum(dim=1).tolist()
    return ModelInputs(
        tensors=tensors,
        prompt_tokens=tuple(int(count) for count in counts),
        in_reasoning=tuple(opens_reasoning(r.text) for r in rendered),
        pictures=_digest(shown) if digests else b"",
    )


def _digest(shown: Mapping[str, Any]) -> bytes:
    """Digest tensors with their names, shapes and formats, so that no two things are one."""
    if not shown:
        return b""
    digest = hashlib.blake2b(digest_size=32)
    for name, value in sorted(shown.items()):
        array = value.contiguous() if isinstance(value, torch.Tensor) else torch.tensor(value)
        digest.update(f"{name} {array.dtype} {list(array.shape)};".encode())
        digest.update(array.flatten().view(torch.uint8).numpy().data)
    return digest.digest()


def _placed(value: Any, device: torch.device, dtype: torch.dtype) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return value.to(device, dtype) if value.is_floating_point() else value.to(device)


def _render(
    prompt: Prompt, processor: Any, *, supports_video: bool, thinking: bool | None
) -> _Rendered:
    images = [_takeable(image) for image in prompt.images]
    words = _Words(processor)
    text, video = words.plain(prompt.text), prompt.video
    if video is not None and not supports_video:
        images += [_takeable(frame) for frame in video]
        text = f"{_frames_note(prompt)}\n{text}"
        video = None
    content: list[dict[str, str]] = [{"type": "image"}] * len(images)
    if video is not None:
        content.append({"type": "video"})
    content.append({"type": "text", "text": text})
    rendered = _apply_template(
        processor, content, system=words.plain(prompt.system), thinking=thinking
    )
    return _Rendered(rendered, images, video)


def _takeable(pixels: UInt8Array) -> Image.Image:
    """
    Make a picture that every processor takes: the short side of a very thin one is stretched.

    Processors take an axis of 1, 3 or 4 for the channels, and refuse pictures that are hundreds of
    times longer than wide; so no side stays below 8 pixels or a hundredth of the other.
    """
    image = Image.fromarray(pixels)
    least = max(_SHORTEST_EDGE_PX, -(-max(image.size) // _MOST_ASPECT))
    width, height = (max(side, least) for side in image.size)
    if (width, height) == image.size:
        return image
    return image.resize((width, height), Image.Resampling.NEAREST)


def _apply_template(
    processor: Any, content: list[dict[str, str]], *, system: str, thinking: bool | None
) -> str:
    extra = {} if thinking is None else {"enable_thinking": thinking}

    def render(messages: list[dict[str, Any]]) -> str:
        return str(
            processor.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, **extra
            )
        )

    user = {"role": "user", "content": content}
    if not system:
        return render([user])
    first = {"role": "system", "content": [{"type": "text", "text": system}]}
    try:
        rendered = render([first, user])
    except (jinja2.TemplateError, TypeError):
        rendered = ""  # many templates know no system role, or only as plain text
    # The user's own words may hold those of the system: only what it adds can tell.
    if rendered.count(system.strip()) > render([user]).count(system.strip()):
        return rendered
    merged = {**content[-1], "text": f"{system}\n\n{content[-1]['text']}"}
    return render([{**user, "content": [*content[:-1], merged]}])


class _Words:
    """A person's words, so that they cannot be taken for the marks of the conversation."""

    def __init__(self, processor: Any) -> None:
        tokenizer = getattr(processor, "tokenizer", processor)
        names = ("image_token", "video_token", "boi_token", "eoi_token", "fake_image_token")
        own = [getattr(processor, name, None) for name in names]
        added = [str(token) for token in tokenizer.added_tokens_decoder.values() if token.special]
        marks = [*tokenizer.all_special_tokens, *added, *own]
        self._marks = sorted({m for m in marks if isinstance(m, str) and len(m) > 1}, key=len)

    def plain(self, text: str) -> str:
        """
        Break every special token in *text* with a space after its first character.

        Otherwise ``<image>`` in a question is an image that is not there, which processors
        refuse, and ``<|im_end|>`` in a caption's template ends the question early.
        """
        if not any(mark in text for mark in self._marks):
            return text
        for mark in reversed(self._marks):
            text = text.replace(mark, f"{mark[0]} {mark[1:]}")
        return text


def _frames_note(prompt: Prompt) -> str:
    frames = 0 if prompt.video is None else len(prompt.video)
    indices = prompt.video_indices or range(frames)
    times = prompt.video_timestamps_s or [i / prompt.video_rate_hz for i in indices]
    at = ", ".join(f"{time:.1f}" for time in times)
    return f"The last {frames} images are frames of one video, at {at} seconds."


def _tokenise(rendered: Sequence[_Rendered], prompts: Sequence[Prompt], processor: Any) -> Any:
    arguments: dict[str, Any] = {}
    if any(r.images for r in rendered):
        arguments["images"] = [r.images for r in rendered]
    if rendered[0].video is not None:
        arguments["videos"] = [r.video for r in rendered]
        arguments["video_metadata"] = [_video_metadata(prompt) for prompt in prompts]
        arguments["do_sample_frames"] = False  # the caller chose the frames
    bos = getattr(getattr(processor, "tokenizer", processor), "bos_token", None)
    if bos and rendered[0].text.startswith(bos):
        arguments["add_special_tokens"] = False  # the template wrote it already
    texts = [r.text for r in rendered]
    return processor(text=texts, padding=True, return_tensors="pt", **arguments)


def _video_metadata(prompt: Prompt) -> dict[str, Any]:
    """
    Describe the video as transformers does: which frames these are of a source of what rate.

    Processors compute the time of a frame as its index over the rate, and the rate of the sample
    from the number of frames over the length. Given times are expressed in milliseconds, so that
    they come out as they were given.
    """
    frames = 0 if prompt.video is None else len(prompt.video)
    indices, rate_hz = list(prompt.video_indices or range(frames)), prompt.video_rate_hz
    if prompt.video_timestamps_s is not None:
        rate_hz = 1000.0
        indices = [round(time_s * rate_hz) for time_s in prompt.video_timestamps_s]
    length = indices[-1] + 1
    if frames > 1:
        length = round(frames * (indices[-1] - indices[0]) / (frames - 1))
    return {
        "fps": rate_hz,
        "frames_indices": indices,
        "total_num_frames": length,
        "duration": length / rate_hz,
    }
