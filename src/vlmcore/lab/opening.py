"""Targets by their words: a model of this machine or behind a server, opened and looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from vlmcore._arrays import require_count
from vlmcore._closing import Closing
from vlmcore._copying import thawed, through_constructor
from vlmcore._json_values import frozen_object
from vlmcore.contracts.json_text import read_json
from vlmcore.errors import ContractError
from vlmcore.lab.asking.predictors import PredictorAsker
from vlmcore.lab.asking.requests import Asker
from vlmcore.lab.asking.servers import ServerAsker
from vlmcore.lab.checkpoint_files import find_checkpoint
from vlmcore.lab.redacting import address_without_secrets
from vlmcore.lab.server_facts import server_of
from vlmcore.lab.targets import Checkpoint, Target, TargetKind
from vlmcore.limits import SuiteLimits, require_at_most
from vlmcore.media.formats import ImageFormat
from vlmcore.secrets import Secret
from vlmcore.vlm.generation import GenerationCache, GenerationOptions, MatmulPrecision
from vlmcore.vlm.loading import load_predictor
from vlmcore.vlm.predictor import Predictor
from vlmcore.vlm.remote.pictures import PictureRules
from vlmcore.vlm.remote.providers import ServerProtocol, named_provider, names_a_server
from vlmcore.vlm.remote.tracing import TracedServer

__all__ = ["OpenedTarget", "TargetChoice", "open_target"]

_LOADING = ("device", "dtype", "memory", "attention", "weights", "decoding", "revision")
_ANSWERING: Mapping[str, Mapping[str, Any]] = {
    "cache": {each.value: each for each in GenerationCache},
    "matmul_precision": {each.value: each for each in MatmulPrecision},
    "prompt_lookup": {"true": True, "false": False},
}
_SENDING = ("picture_format", "picture_quality")
_SHOWING = ("longest_edge_px",)
_DIGITS = 10  # of a number that is read at all


@attrs.frozen(kw_only=True)
class TargetChoice:
    """
    A target as somebody names it.

    Attributes:
        name: As samples will name it.
        model: A model as `vlmcore.load_predictor` takes it: ``"embedded"``, a folder, a hub id, or
            ``"http://127.0.0.1:8000/v1#model"``.
        options: What is set otherwise than usual: of a model in this process how it is loaded, as
            ``{"dtype": "float32", "decoding": "compiled"}``, and ``cache``, ``matmul_precision``
            and ``prompt_lookup``; of one behind a server ``picture_format`` and
            ``picture_quality``. Of both ``longest_edge_px``, where pictures are shown smaller than
            cases say.

    Raises:
        ContractError: If an option is of neither kind, or a size is not one.

    Example:
        >>> TargetChoice.of("embedded,dtype=float32", name="today").options["dtype"]
        'float32'
    """

    name: str
    model: str
    options: Mapping[str, str] = attrs.field(factory=dict, hash=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "options", frozen_object(self.options, field="options"))
        known = *(_SENDING if self.is_served else (*_LOADING, *_ANSWERING)), *_SHOWING
        for option in self.options:
            if option not in known:
                problem = f"got {option!r:.80} of {self.model!r:.80}, expected one of "
                raise ContractError("options", problem + ", ".join(known))
        if self.longest_edge_px is not None:
            require_count(longest_edge_px=self.longest_edge_px)
            require_at_most("max_edge_px", self.longest_edge_px, SuiteLimits().max_edge_px)

    __reduce__ = through_constructor

    @classmethod
    def of(cls, words: str, *, name: str) -> TargetChoice:
        """
        Read ``MODEL,OPTION=VALUE,...``.

        Raises:
            ContractError: If it is not written so.
        """
        model, *rest = words.split(",")
        options = {}
        for word in rest:
            option, equals, value = word.partition("=")
            if not equals or option in options:
                expected = "expected MODEL,OPTION=VALUE,... with each option once"
                raise ContractError("target", f"got {word!r:.80}, {expected}")
            options[option] = value
        return cls(name=name, model=model, options=options)

    @property
    def longest_edge_px(self) -> int | None:
        """How long an edge of a picture is shown at most; ``None`` for what cases say."""
        word = self.options.get("longest_edge_px")
        if word is None:
            return None
        if not (word.isascii() and word.isdecimal() and len(word) < _DIGITS):
            raise ContractError("longest_edge_px", f"got {word!r:.80}, expected a number of pixels")
        return int(word)

    @property
    def is_served(self) -> bool:
        """Whether the model is behind a server."""
        return names_a_server(self.model)


@attrs.frozen(kw_only=True, eq=False)
class OpenedTarget(Closing):
    """
    A target that can be asked.

    Attributes:
        facts: What it is, for the identity of a run.
        unknown: Why something of that is not known, by its place in it.
        asker: Asks it.
        generation: How its answers are generated.
        rules: How pictures are sent to it; ``None`` for a model in this process.
        secrets: Tokens in reach of it.
    """

    facts: Target
    unknown: Mapping[str, str]
    asker: Asker
    generation: GenerationOptions
    rules: PictureRules | None
    secrets: tuple[Secret | None, ...] = attrs.field(default=(), repr=False)

    def close(self) -> None:
        """Give back what it holds."""
        self.asker.close()


def open_target(
    choice: TargetChoice,
    *,
    generation: GenerationOptions,
    deadline_s: float,
    streamed: bool = True,
    keeps: bool = False,
    clock_ns: Callable[[], int],
    load: Callable[..., Predictor] = load_predictor,
) -> OpenedTarget:
    """
    Load a model, or find a server, and look at what it is.

    Args:
        choice: Which.
        generation: How answers are generated, where the choice says nothing else.
        deadline_s: How long a request may take.
        streamed: Whether a server is asked to answer piece by piece.
        keeps: Whether a model in this process may keep what it made of earlier prompts.
        clock_ns: The clock of the run.
        load: What loads a model of this machine.

    Raises:
        VlmcoreError: As `vlmcore.load_predictor`.
    """
    if choice.is_served:
        return _server(
            choice, generation, deadline_s=deadline_s, streamed=streamed, clock_ns=clock_ns
        )
    loading = {name: value for name, value in choice.options.items() if name in _LOADING}
    answering = {
        name: _member(name, value, _ANSWERING[name])
        for name, value in choice.options.items()
        if name in _ANSWERING
    }
    predictor = load(choice.model, reuse=keeps, **loading)
    info = predictor.info
    folder = Path(info.source)
    has_files = folder.is_dir()
    checkpoint = (
        find_checkpoint(choice.model, folder)
        if has_files
        else Checkpoint(model=choice.model, revision=loading.get("revision"))
    )
    told = {
        "backend": info.backend,
        "device": info.device,
        "memory": info.memory,
        "attention": info.attention,
        "decoding": info.decoding,
    }
    return OpenedTarget(
        facts=Target(
            name=choice.name,
            precision=info.dtype,
            options={**thawed(choice.options), "as_loaded": told},
            checkpoint=checkpoint,
        ),
        unknown={} if has_files else {"checkpoint.files": "its files are in the cache of a hub"},
        asker=PredictorAsker(predictor),
        generation=attrs.evolve(generation, **answering),
        rules=None,
    )


def _server(
    choice: TargetChoice,
    generation: GenerationOptions,
    *,
    deadline_s: float,
    streamed: bool,
    clock_ns: Callable[[], int],
) -> OpenedTarget:
    rules = _rules(choice)
    server = _traced(choice, rules, deadline_s=deadline_s, streamed=streamed, clock_ns=clock_ns)
    facts = server_of(
        server.address,
        version=_document(server.tell("/version")),
        models=_document(server.tell("/v1/models")),
        metrics=server.tell("/metrics"),
        secrets=(server.key,),
    )
    why = "the server does not tell"
    return OpenedTarget(
        facts=Target(
            name=choice.name,
            kind=TargetKind.SERVER,
            options=thawed(choice.options),
            checkpoint=Checkpoint(model=server.model),
            server=facts,
        ),
        unknown={
            "precision": why,
            "checkpoint.revision": why,
            "checkpoint.files": why,
            **{f"server.{f}": why for f in ("version", "models") if getattr(facts, f) is None},
        },
        asker=ServerAsker(server, streamed=streamed),
        generation=generation,
        rules=rules,
        secrets=(server.key,),
    )


def _traced(
    choice: TargetChoice,
    rules: PictureRules,
    *,
    deadline_s: float,
    streamed: bool,
    clock_ns: Callable[[], int],
) -> TracedServer:
    provider = named_provider(choice.model)
    sign = "#" if provider is None else ":"
    address, _, model = choice.model.partition(sign)
    if not model or (provider and provider.protocol is not ServerProtocol.CHAT_COMPLETIONS):
        expected = "expected URL#model or PROVIDER:model of a server of chat completions"
        shown = address_without_secrets(address) if provider is None else choice.model
        raise ContractError("target", f"got {shown!r:.200}, {expected}")
    return TracedServer(
        None if provider else address,
        provider=None if provider is None else provider.name,
        model=model,
        timeout_s=deadline_s,
        streaming=streamed,
        pictures=rules,
        clock_ns=clock_ns,
    )


def _rules(choice: TargetChoice) -> PictureRules:
    said: dict[str, Any] = {}
    if "picture_format" in choice.options:
        said["format"] = _member(
            "picture_format",
            choice.options["picture_format"],
            {"jpeg": ImageFormat.JPEG, "png": ImageFormat.PNG},
        )
    if "picture_quality" in choice.options:
        quality = choice.options["picture_quality"]
        if not quality.isdecimal():
            raise ContractError("picture_quality", f"got {quality!r:.80}, expected a number")
        said["quality"] = int(quality)
    return PictureRules(**said)


def _member(option: str, word: str, members: Mapping[str, Any]) -> Any:
    if word not in members:
        expected = ", ".join(members)
        raise ContractError(option, f"got {word!r:.80}, expected one of {expected}")
    return members[word]


def _document(text: str | None) -> Any:
    try:
        return None if text is None else read_json(text)
    except ContractError:
        return text  # as a version that stands alone
