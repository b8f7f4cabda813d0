"""Models behind a server that did not answer as they were asked."""

from __future__ import annotations

from vlmcore.errors._models import ModelAccessError, ModelError

__all__ = [
    "ModelNotServedError",
    "ModelServerBusyError",
    "ModelServerError",
    "ModelServerKeyError",
    "ModelServerProtocolError",
    "ModelServerRateLimitError",
    "ModelServerRefusedError",
    "ModelServerTimeoutError",
    "ModelServerUnavailableError",
]


class ModelServerError(ModelError):
    """
    A model behind a server gave no answer, or not all of it.

    Attributes:
        text: What came of the answer before it ended.
    """

    def __init__(self, model: str, problem: str, text: str = "") -> None:
        super().__init__(model, problem)
        self.args = (model, problem, text)
        self.text = text


class ModelServerUnavailableError(ModelServerError, ConnectionError):
    """A server cannot be reached; nothing was asked yet."""

    errno = strerror = None  # OSError takes two arguments for these


class ModelServerTimeoutError(ModelServerError, TimeoutError):
    """
    A server did not end in time.

    Attributes:
        wait: What was waited for, as ``"answer"``.
        waited_s: How long the whole call was allowed to take.
    """

    errno = strerror = None

    def __init__(self, model: str, wait: str, waited_s: float, text: str = "") -> None:
        super().__init__(model, f"no {wait} within {waited_s:.3g} s", text)
        self.args = (model, wait, waited_s, text)
        self.wait = wait
        self.waited_s = waited_s


class ModelServerProtocolError(ModelServerError):
    """A server broke its protocol, or hung up before the answer was whole."""


class ModelServerRefusedError(ModelServerError):
    """
    A server answered with an error of its own; the problem is its words, cut.

    Attributes:
        status: The status of HTTP; 200 if the error came in an answer that began well.
        code: What the server calls the error; empty if it said nothing.
        retry_after_s: When it may be asked again, as it says; ``None`` if it does not.
    """

    def __init__(  # noqa: PLR0917 - pickled by position
        self,
        model: str,
        problem: str,
        text: str = "",
        status: int = 200,
        code: str = "",
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(model, problem, text)
        self.args = (model, problem, text, status, code, retry_after_s)
        self.status = status
        self.code = code
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        known = [
            f"HTTP {self.status}" if self.status != 200 else "",
            self.code,
            "" if self.retry_after_s is None else f"again after {self.retry_after_s:.6g} s",
        ]
        told = ", ".join(part for part in known if part)
        return f"{super().__str__()}{f' ({told})' if told else ''}"


class ModelServerKeyError(ModelServerRefusedError):
    """A server does not take the key, or was shown none."""


class ModelServerRateLimitError(ModelServerRefusedError):
    """Too much was asked of a server in a short time."""


class ModelServerBusyError(ModelServerRefusedError):
    """A server failed on its side, and may not the next time."""


class ModelNotServedError(ModelServerRefusedError, ModelAccessError):
    """A server does not know the model."""
