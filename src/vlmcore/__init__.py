"""
Vision-language models as a plain Python library: typed, bounded, and usable offline.

::

    import vlmcore

    with vlmcore.load_predictor("embedded") as predictor:
        prompt = vlmcore.Prompt.of("What is in this picture?", "scene.png")
        print(predictor.generate(prompt).text)

What robots report and accept, and the gate for their actions, is here too: `Embodiment`,
`Observation`, `ActionChunk`, `SafetyGate`, `VettedChunk`.

Importing this package loads next to nothing: what is behind a name is loaded when it is used, and
torch, transformers and Pillow when a model or an image file is opened.
"""

from typing import TYPE_CHECKING

from vlmcore.errors import (
    ContractError,
    GenerationError,
    LimitExceededError,
    MediaError,
    MissingDependencyError,
    ModelAccessError,
    ModelError,
    ModelMemoryError,
    UnsafeActionError,
    UnsupportedModelError,
    VlmcoreError,
)

if TYPE_CHECKING:
    from vlmcore.contracts.actions import ActionChunk
    from vlmcore.contracts.embodiment import Embodiment
    from vlmcore.contracts.observation import Observation
    from vlmcore.limits import ImageLimits
    from vlmcore.media.images import load_image
    from vlmcore.safety.gate import SafetyGate
    from vlmcore.safety.vetted import VettedChunk
    from vlmcore.vlm.generation import CancelToken, Generation, GenerationOptions, StopReason
    from vlmcore.vlm.loading import load_predictor
    from vlmcore.vlm.predictor import Predictor
    from vlmcore.vlm.prompt import Prompt

__all__ = [
    "ActionChunk",
    "CancelToken",
    "ContractError",
    "Embodiment",
    "Generation",
    "GenerationError",
    "GenerationOptions",
    "ImageLimits",
    "LimitExceededError",
    "MediaError",
    "MissingDependencyError",
    "ModelAccessError",
    "ModelError",
    "ModelMemoryError",
    "Observation",
    "Predictor",
    "Prompt",
    "SafetyGate",
    "StopReason",
    "UnsafeActionError",
    "UnsupportedModelError",
    "VettedChunk",
    "VlmcoreError",
    "load_image",
    "load_predictor",
]

__version__ = "0.1.0.dev0"


if not TYPE_CHECKING:  # for a type checker every name would then be one of ours

    def __getattr__(name: str) -> object:  # noqa: C901 - one case for each module
        # What is behind these names takes a tenth of a second to import; nobody needs all of it.
        match name:
            case "ActionChunk":
                from vlmcore.contracts import actions as home
            case "Embodiment":
                from vlmcore.contracts import embodiment as home
            case "Observation":
                from vlmcore.contracts import observation as home
            case "ImageLimits":
                from vlmcore import limits as home
            case "load_image":
                from vlmcore.media import images as home
            case "SafetyGate":
                from vlmcore.safety import gate as home
            case "VettedChunk":
                from vlmcore.safety import vetted as home
            case "CancelToken" | "Generation" | "GenerationOptions" | "StopReason":
                from vlmcore.vlm import generation as home
            case "load_predictor":
                from vlmcore.vlm import loading as home
            case "Predictor":
                from vlmcore.vlm import predictor as home
            case "Prompt":
                from vlmcore.vlm import prompt as home
            case _:
                raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(home, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
