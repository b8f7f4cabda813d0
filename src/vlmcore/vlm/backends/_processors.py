"""The processor of a model: what turns prompts into its inputs; without torchvision, too."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import transformers

from vlmcore.errors import ContractError, ModelError, UnsupportedModelError
from vlmcore.vlm.checkpoint import read_config

__all__ = ["open_processor"]

_library: Any = transformers  # its annotations are partial
_FOR_IMAGES = ("preprocessor_config.json", "processor_config.json")
_DECLARED_IN = ("processor_config.json", "preprocessor_config.json", "tokenizer_config.json")
# SmolVLM's processor adds to that of Idefics 3 what it does to videos, and needs num2words for it.
_WITHOUT_VIDEO = {"SmolVLMProcessor": "Idefics3Processor"}
_LOCAL = {"local_files_only": True, "trust_remote_code": False}
_HELLO = [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]


def open_processor(model: str, folder: Path, chat_template: str | None) -> Any:
    """
    Open the processor of a model, padding on the left, with a chat template.

    Video processors of transformers need torchvision. Without it, the processor is opened for
    images only: its ``video_processor`` is ``None``.

    Args:
        model: The model as the caller named it.
        folder: The folder of the model.
        chat_template: A Jinja template that takes the place of the model's own.

    Raises:
        UnsupportedModelError: If there is no processor for images and text, or no chat template.
        ContractError: If *chat_template* does not work.
    """
    for_images = any((folder / name).exists() for name in _FOR_IMAGES)
    processor = _open(model, folder) if for_images else None
    if not isinstance(processor, transformers.ProcessorMixin) or not _takes_images(processor):
        problem = (
            "has no processor for images and text (preprocessor_config.json): is it text only?"
        )
        raise UnsupportedModelError(model, problem)
    processor.tokenizer.padding_side = "left"  # answers follow the prompts of a batch
    _give_chat_template(model, processor, chat_template)
    return processor


def _open(model: str, folder: Path) -> Any:
    try:
        return _library.AutoProcessor.from_pretrained(folder, **_LOCAL)
    except Exception as error:
        if not _may_be_for_videos(error):
            raise _failure(model, error) from error
        first = error
    try:
        return _open_for_images(folder, _declared_class(model, folder))
    except Exception as error:
        if _names_torchvision(error):
            problem = "its image processor needs the package 'torchvision', which is not installed"
            raise UnsupportedModelError(model, problem) from first
        raise _failure(model, error) from error


def _may_be_for_videos(error: Exception) -> bool:
    """Whether a processor may have failed for what videos need, and images do not."""
    if find_spec("torchvision") is not None and find_spec("num2words") is not None:
        return False
    return isinstance(error, ImportError) or _names_torchvision(error)


def _names_torchvision(error: BaseException | None) -> bool:
    while error is not None:
        if "torchvision" in str(error).lower():
            return True
        error = error.__cause__ or error.__context__
    return False


def _failure(model: str, error: Exception) -> ModelError:
    line = str(error).strip().partition("\n")[0]
    problem = (
        f"its processor cannot be opened by transformers {transformers.__version__} "
        f"({type(error).__name__}: {line})"
    )
    return UnsupportedModelError(model, problem)


def _declared_class(model: str, folder: Path) -> str:
    for name in _DECLARED_IN:
        if (folder / name).exists():
            declared = read_config(model, folder / name).get("processor_class")
            if isinstance(declared, str):
                return declared
    model_type = read_config(model, folder / "config.json").get("model_type")
    return str(
        _library.models.auto.processing_auto.PROCESSOR_MAPPING_NAMES.get(str(model_type), "")
    )


def _open_for_images(folder: Path, name: str) -> Any:
    """Open a processor of the class *name*, as if that class knew no videos."""
    base: Any = getattr(_library, _WITHOUT_VIDEO.get(name, name))
    parts = [part for part in _parts(base) if part != "video_processor"]
    members = {
        "__module__": base.__module__,
        "attributes": parts,  # transformers 4
        "get_attributes": classmethod(lambda _: parts),  # transformers 5
        "video_processor": None,
    }
    for_images: Any = type(base.__name__, (base,), members)
    processor = for_images.from_pretrained(folder, **_LOCAL)
    _keep_declared_size(processor.image_processor, folder)
    return processor


def _parts(base: Any) -> list[str]:
    return list(base.get_attributes() if hasattr(base, "get_attributes") else base.attributes)


def _keep_declared_size(image_processor: Any, folder: Path) -> None:
    """Repair Qwen's image processor of transformers 4, which forgets the size it is given."""
    declared = type(image_processor).get_image_processor_dict(folder, **_LOCAL)[0].get("size")
    bounds = ("shortest_edge", "longest_edge")
    if not hasattr(image_processor, "min_pixels") or not isinstance(declared, dict):
        return
    if set(bounds) <= declared.keys() and isinstance(image_processor.size, dict):
        image_processor.size = {bound: declared[bound] for bound in bounds}
        image_processor.min_pixels, image_processor.max_pixels = image_processor.size.values()


def _takes_images(processor: Any) -> bool:
    parts = ("image_processor", "tokenizer")
    return all(getattr(processor, part, None) is not None for part in parts)


def _give_chat_template(model: str, processor: Any, given: str | None) -> None:
    if given is not None:
        if not isinstance(given, str) or not given.strip():
            raise ContractError("chat_template", f"got {given!r}, expected a Jinja template")
        processor.chat_template = given
        try:
            processor.apply_chat_template(_HELLO, add_generation_prompt=True, tokenize=False)
        except Exception as error:
            problem = f"the template does not work ({type(error).__name__}: {error})"
            raise ContractError("chat_template", problem) from error
        return
    template = getattr(processor, "chat_template", None) or processor.tokenizer.chat_template
    if isinstance(template, dict):  # templates by purpose
        template = template.get("default")
    if not template:
        problem = "has no chat template: give one as chat_template=, or use a chat model"
        raise UnsupportedModelError(model, problem)
    processor.chat_template = template
