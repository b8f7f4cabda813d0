"""The providers whose keys have a name: where they are, and what they take."""

from __future__ import annotations

import enum

import attrs

from vlmcore.vlm.remote.pictures import PictureRules

__all__ = [
    "CUSTOM_KEY_VARIABLE",
    "PROVIDERS",
    "Provider",
    "ServerProtocol",
    "find_provider",
    "named_provider",
    "names_a_server",
]

CUSTOM_KEY_VARIABLE = "CUSTOM_API_KEY"
"""Where the key of a server is that is no provider's."""


class ServerProtocol(enum.Enum):
    """What is spoken with a server."""

    CHAT_COMPLETIONS = "chat"  # OpenAI's older one, which nearly everybody speaks
    RESPONSES = "responses"  # OpenAI's newer one
    MESSAGES = "messages"  # Anthropic's


@attrs.frozen(kw_only=True)
class Provider:
    """
    A hosted service, and what its requests may hold.

    Attributes:
        name: As in ``load_predictor("openai:...")``.
        base_url: Where it is. Its key goes there and nowhere else.
        key_variable: The environment variable that holds its key.
        protocol: What it speaks.
        length_field: What it calls the longest answer.
        seed_field: What it calls the seed; ``None`` if it takes none.
        takes_top_k: Whether it samples from the likeliest tokens only, if asked.
        takes_repetition_penalty: Whether it takes one.
        max_request_bytes: Size of a request; ``None`` where it is not known.
        pictures: Which pictures it takes.
    """

    name: str
    base_url: str
    key_variable: str
    protocol: ServerProtocol = ServerProtocol.CHAT_COMPLETIONS
    length_field: str = "max_tokens"
    seed_field: str | None = "seed"
    takes_top_k: bool = False
    takes_repetition_penalty: bool = False
    max_request_bytes: int | None = None
    pictures: PictureRules = attrs.field(factory=PictureRules)


# Sources of the limits: docs.claude.com, vision (some models take more pictures); OpenAI's guide to
# images; console.groq.com, vision; for Gemini firebase.google.com, input files. How many pictures
# Groq and Mistral take was found by trying (earendil-works/pi, pull request 120), and the bytes of
# one for Mistral are from dlt-hub's page on it: the providers' own pages could not be read whole.
PROVIDERS: tuple[Provider, ...] = (
    Provider(
        name="openai",
        base_url="https://api.openai.com/v1",
        key_variable="OPENAI_API_KEY",
        length_field="max_completion_tokens",
        max_request_bytes=50_000_000,
        pictures=PictureRules(max_pictures=500),
    ),
    Provider(
        name="openai-responses",
        base_url="https://api.openai.com/v1",
        key_variable="OPENAI_API_KEY",
        protocol=ServerProtocol.RESPONSES,
        length_field="max_output_tokens",
        seed_field=None,
        max_request_bytes=50_000_000,
        pictures=PictureRules(max_pictures=500),
    ),
    Provider(
        name="gemini",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai/",
        key_variable="GEMINI_API_KEY",
        max_request_bytes=20_000_000,
    ),
    Provider(
        name="anthropic",
        base_url="https://api.anthropic.com/v1/",
        key_variable="ANTHROPIC_API_KEY",
        protocol=ServerProtocol.MESSAGES,
        seed_field=None,
        takes_top_k=True,
        max_request_bytes=32_000_000,
        pictures=PictureRules(
            max_pictures=100,
            longest_edge_px=8000,
            many_pictures=20,
            edge_of_many_px=2000,
            max_picture_bytes=3_750_000,  # 5 MB in Base64
        ),
    ),
    Provider(name="xai", base_url="https://api.x.ai/v1", key_variable="XAI_API_KEY"),
    Provider(
        name="deepseek", base_url="https://api.deepseek.com/v1", key_variable="DEEPSEEK_API_KEY"
    ),
    Provider(
        name="groq",
        base_url="https://api.groq.com/openai/v1",
        key_variable="GROQ_API_KEY",
        length_field="max_completion_tokens",
        max_request_bytes=4_000_000,
        pictures=PictureRules(max_pictures=5),
    ),
    Provider(
        name="mistral",
        base_url="https://api.mistral.ai/v1",
        key_variable="MISTRAL_API_KEY",
        seed_field="random_seed",
        pictures=PictureRules(max_pictures=8, max_picture_bytes=10_000_000),
    ),
    Provider(
        name="together",
        base_url="https://api.together.ai/v1",
        key_variable="TOGETHER_API_KEY",
        takes_top_k=True,
        takes_repetition_penalty=True,
    ),
    Provider(
        name="openrouter",
        base_url="https://openrouter.ai/api/v1",
        key_variable="OPENROUTER_API_KEY",
        takes_top_k=True,
        takes_repetition_penalty=True,
    ),
)
"""Every provider that has a name, with the limits that are known of it; those of a model differ."""


def find_provider(name: str) -> Provider | None:
    """
    Find the provider of a name; ``None`` if there is none.

    Example:
        >>> find_provider("groq").key_variable
        'GROQ_API_KEY'
    """
    return next((provider for provider in PROVIDERS if provider.name == name), None)


def names_a_server(name: str) -> bool:
    """
    Say whether a name is that of a model behind a server.

    Example:
        >>> [names_a_server(name) for name in ("http://localhost:8000", "groq:any", "org/name")]
        [True, True, False]
    """
    return name.lower().startswith(("http://", "https://")) or named_provider(name) is not None


def named_provider(name: str) -> Provider | None:
    """
    Find the provider in the name of a model, ``openai:model``; ``None`` if there is none.

    Example:
        >>> named_provider("groq:any").name
        'groq'
    """
    provider, colon, model = name.partition(":")
    return find_provider(provider) if colon and model else None
