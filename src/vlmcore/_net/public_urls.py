"""Addresses of files on the internet, which somebody else wrote: what may be fetched."""

from __future__ import annotations

import re
from urllib.parse import urljoin

import attrs

from vlmcore.endpoint import Endpoint, is_public_address
from vlmcore.errors import EndpointError

__all__ = ["PublicUrl"]

_URL = re.compile(r"(https)://([^/?#\\]*)(/[^?#\\]*)?(\?[^#\\]*)?(?:#[^\\]*)?", re.IGNORECASE)
_HTTPS_PORT = 443


@attrs.frozen(kw_only=True)
class PublicUrl:
    """
    The address of a file on the internet: ``https``, port 443, and nothing of who asks in it.

    A name may still lead into a private network: what it is resolved to is checked when it is
    dialled, by `vlmcore._net.lookup.require_public`.

    Attributes:
        endpoint: The host to dial.
        target: Path and query, from the first slash on. Whoever knows it may fetch the file.
    """

    endpoint: Endpoint
    target: str = attrs.field(repr=False)

    @classmethod
    def parse(cls, text: str, *, most_characters: int) -> PublicUrl:
        """
        Read an address that somebody wrote.

        Raises:
            EndpointError: If it is no such address. Nothing behind the host is shown.

        Example:
            >>> PublicUrl.parse("https://cdn.example/a.mp3?sign=x", most_characters=100).target
            '/a.mp3?sign=x'
        """
        _require_plain(text, most_characters)
        match = _URL.fullmatch(text)
        if match is None:
            raise EndpointError(
                "url", "got another address, expected one that begins with https://"
            )
        endpoint = Endpoint.parse(f"https://{match[2]}", schemes=("https",), allow_remote=True)
        if endpoint.port != _HTTPS_PORT:
            raise EndpointError(
                endpoint.origin, f"got port {endpoint.port}, expected {_HTTPS_PORT}"
            )
        is_address = ":" in endpoint.host or endpoint.host.rpartition(".")[2].isdigit()
        is_private = is_address and not is_public_address(endpoint.host)
        if endpoint.is_loopback or is_private:
            raise EndpointError(
                endpoint.origin, "got a host in a private network, expected one of the internet"
            )
        return cls(endpoint=endpoint, target=f"{match[3] or '/'}{match[4] or ''}")

    def redirected(self, location: str, *, most_characters: int) -> PublicUrl:
        """
        Read where this address leads to, which may be relative to it, under the same rules.

        Raises:
            EndpointError: If that is no such address.
        """
        _require_plain(location, most_characters)  # joining drops line breaks
        try:
            joined = urljoin(f"{self.endpoint.origin}{self.target}", location)
        except ValueError:
            raise EndpointError(self.endpoint.origin, "got a redirect to no address") from None
        return PublicUrl.parse(joined, most_characters=most_characters)


def _require_plain(text: object, most_characters: int) -> None:
    if not isinstance(text, str):
        raise EndpointError("url", f"got {type(text).__name__}, expected text")
    if len(text) > most_characters:
        raise EndpointError("url", f"got {len(text)} characters, limit is {most_characters}")
    if re.search(r"[^\x21-\x7e]", text):
        raise EndpointError("url", "got a space or what is no ASCII, expected it encoded")
