"""Endpoints: what may be dialled, parsed once, so that nobody reads an address in another way."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection

import attrs

from vlmcore._arguments import require_switch
from vlmcore.errors import EndpointError

__all__ = ["Endpoint", "is_public_address"]

_LONGEST = 2048
_LONGEST_NAME = 253
_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}
_ENCRYPTED = {"http": "https", "ws": "wss"}  # what each becomes
_WITHOUT_PATH = frozenset(("tcp",))
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")  # an IPv4 address in its last 32 bits
_GIVEN_OUT = ipaddress.ip_network("2000::/3")  # of IPv6: nothing else is anybody's on the internet
# The special-purpose registries of IANA, as far as hosts of the internet have no such address. Not
# what `ipaddress` knows of them: that depends on the Python.
_NOT_PUBLIC = tuple(
    ipaddress.ip_network(block)
    for block in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
        *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16"),
        *("198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3"),
        *("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"),
    )
)

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")  # a host that ends so is an address, in some spelling
_PATH = re.compile(r"(?:/[A-Za-z0-9._~:-]+)*/?")


@attrs.frozen(kw_only=True)
class Endpoint:
    """
    Where a server listens: a scheme, a host, a port, and a path.

    A host is *loopback* if it is an address of 127.0.0.0/8, ``::1``, ``localhost`` or a name that
    ends in ``.localhost``. These names are not looked up: they are 127.0.0.1 by definition. Every
    other host is remote, and remote is encrypted, except over ``tcp``, which has no encryption.

    Attributes:
        scheme: In lower case, as ``"https"``.
        host: A name in lower case or an address; of IPv6 without brackets.
        port: 1 to 65535.
        path: Empty, or from its first slash on.

    Raises:
        EndpointError: If a field is not as described.
    """

    scheme: str
    host: str
    port: int
    path: str = ""

    def __attrs_post_init__(self) -> None:
        for name in ("scheme", "host", "path"):
            if not isinstance(getattr(self, name), str):
                raise EndpointError("", f"got {getattr(self, name)!r:.80} as the {name}")
        shown = _shown(f"{self.scheme}://{self.host}")
        if not _SCHEME.fullmatch(f"{self.scheme}://") or self.scheme != self.scheme.lower():
            raise EndpointError(shown, f"got the scheme {self.scheme[:40]!a}, expected one")
        _check_host(self.host, shown)
        port = self.port
        if isinstance(port, bool) or not isinstance(port, int) or not 1 <= port <= 0xFFFF:
            raise EndpointError(shown, f"got port {port!r:.20}, expected 1 to 65535")
        _check_path(self.path, self.scheme, str(self.address_and_port))
        if self.scheme in _ENCRYPTED and not self.is_loopback:
            raise EndpointError(
                shown,
                f"got {self.scheme} to a remote host, expected {_ENCRYPTED[self.scheme]}: "
                "what is sent is not encrypted",
            )

    @classmethod
    def parse(
        cls,
        text: str,
        *,
        schemes: Collection[str],
        default_scheme: str | None = None,
        default_port: int | None = None,
        allow_remote: bool = False,
    ) -> Endpoint:
        """
        Read an address that a person wrote.

        Args:
            text: As ``"https://host:8787/path"``; without what has a default, ``"host"``.
            schemes: Which schemes are understood here.
            default_scheme: Which is meant where none is written.
            default_port: Which is meant where none is written; otherwise that of HTTP or HTTPS.
            allow_remote: Whether it may be another host than this one.

        Raises:
            EndpointError: If it is no address, or not one that may be dialled. Nothing that may be
                a password is shown.
            ContractError: If *allow_remote* is neither True nor False.

        Example:
            >>> endpoint = Endpoint.parse(
            ...     "LocalHost:8000", schemes=("ws", "wss"), default_scheme="ws"
            ... )
            >>> endpoint.url, endpoint.address
            ('ws://localhost:8000', '127.0.0.1')
        """
        require_switch(allow_remote=allow_remote)
        shown = _shown(text)
        _check_text(text, shown)
        scheme, rest = _split_scheme(text, schemes, default_scheme, shown)
        authority, slash, path = rest.partition("/")
        host, port = _split_port(authority, shown)
        if port is None:
            port = default_port if default_port is not None else _PORTS.get(scheme)
        if port is None:
            raise EndpointError(shown, f"got no port, expected one, as {host or 'host'}:5555")
        endpoint = cls(scheme=scheme, host=host, port=port, path=slash + path)
        if not endpoint.is_loopback and not allow_remote:
            raise EndpointError(
                shown, "got a remote host, expected this one (127.0.0.1): pass allow_remote=True"
            )
        return endpoint

    @property
    def is_loopback(self) -> bool:
        """Whether what is sent there does not leave this machine."""
        if self.host == "localhost" or self.host.endswith(".localhost"):
            return True
        address = _address(self.host)
        return address is not None and address.is_loopback

    @property
    def is_confidential(self) -> bool:
        """Whether it is loopback or encrypted, so that nobody on the way can read what is sent."""
        return self.is_loopback or self.scheme in _ENCRYPTED.values()

    @property
    def address(self) -> str:
        """
        What to dial, which is an IP address, or the name of a remote host.

        A server that listens at ``::1`` only is dialled as ``[::1]``, not as ``localhost``.
        """
        return "127.0.0.1" if self.is_loopback and _address(self.host) is None else self.host

    @property
    def address_and_port(self) -> str:
        """What to dial in one text, as ``"127.0.0.1:8000"`` or ``"[::1]:8000"``."""
        return f"{_bracketed(self.address)}:{self.port}"

    @property
    def host_header(self) -> str:
        """What the server is called, with its port unless that is the one of the scheme."""
        host = _bracketed(self.host)
        return host if self.port == _PORTS.get(self.scheme) else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """The scheme, host and port, which errors and logs may show."""
        return f"{self.scheme}://{_bracketed(self.host)}:{self.port}"

    @property
    def url(self) -> str:
        """All of it in one text; `parse` reads the same from it."""
        return f"{self.origin}{self.path}"

    def __str__(self) -> str:
        return self.url


def is_public_address(text: str) -> bool:
    """
    Say whether *text* is an IP address of one host that anybody on the internet can reach.

    Addresses of this machine, of private and shared networks, of a link, of the ends of tunnels, of
    many hosts and of nobody are not public, nor is an IPv6 address that stands for such an IPv4
    address. A name is no address.

    Example:
        >>> is_public_address("1.1.1.1"), is_public_address("169.254.169.254")
        (True, False)
    """
    address = _address(text)
    if isinstance(address, ipaddress.IPv6Address):
        if address in _TRANSLATED:
            address = ipaddress.IPv4Address(address.packed[-4:])
        else:
            address = address.ipv4_mapped or address
    if address is None or (address.version == 6 and address not in _GIVEN_OUT):
        return False
    return not any(address in block for block in _NOT_PUBLIC)


def _shown(text: object) -> str:
    """Take what may be shown of an address: nothing of one with credentials, and no query."""
    if not isinstance(text, str):
        return "endpoint"
    text = text[:_LONGEST]
    match = _SCHEME.match(text)
    scheme = match[0][:40] if match else ""
    if "@" in text:  # a password may have any character in it, so nobody knows where it ends
        return f"{scheme}..."
    rest = re.split(r"[/?#\\]", text.removeprefix(scheme), maxsplit=1)[0]
    host = re.sub(r":(?![0-9]{1,9}$)[^:\]]*$", ":...", rest)
    return ascii(f"{scheme}{host[:_LONGEST_NAME]}")[1:-1] or "endpoint"


def _check_text(text: object, shown: str) -> None:
    if not isinstance(text, str):
        raise EndpointError(shown, f"got {type(text).__name__}, expected text")
    if not 1 <= len(text) <= _LONGEST:
        raise EndpointError(shown, f"got {len(text)} characters, expected 1 to {_LONGEST}")
    wrong = re.search(r"[^\x21-\x7e]|[\\?#]", text)
    if "@" in text:
        raise EndpointError(shown, "got a user name or a password, expected none in an address")
    if wrong:
        what = {"?": "a query", "#": "a fragment"}.get(wrong[0], f"the character {wrong[0]!a}")
        raise EndpointError(shown, f"got {what}, expected scheme, host, port and path in ASCII")


def _split_scheme(
    text: str, schemes: Collection[str], default: str | None, shown: str
) -> tuple[str, str]:
    match = _SCHEME.match(text)
    scheme = match[1].lower() if match else default
    expected = f"expected one of {', '.join(schemes)}"
    if scheme is None:
        raise EndpointError(shown, f"got no scheme, {expected}")
    if scheme not in schemes:
        raise EndpointError(shown, f"got the scheme {scheme[:40]}, {expected}")
    return scheme, text[match.end() :] if match else text


def _split_port(authority: str, shown: str) -> tuple[str, int | None]:
    """Split host and port, and write the host as everybody does."""
    if authority.startswith("["):
        host, bracket, after = authority[1:].partition("]")
        if not bracket or ":" not in host or (after and not after.startswith(":")):
            raise EndpointError(shown, "got brackets, expected an IPv6 address in them: [::1]:8000")
    else:
        host, colon, digits = authority.partition(":")
        if ":" in digits:
            raise EndpointError(shown, "got an IPv6 address, expected it in brackets: [::1]:8000")
        after = colon + digits
    port = None
    if after:
        if not re.fullmatch(r":[1-9][0-9]{0,4}", after):
            raise EndpointError(shown, "got a port that is none, expected 1 to 65535")
        port = int(after[1:])
    host = host.lower()
    return host.removesuffix("."), port


def _check_host(host: str, shown: str) -> None:
    if not host:
        raise EndpointError(shown, "got no host, expected a name or an address")
    labels = host.split(".")
    if ":" in host or _NUMBER.fullmatch(labels[-1]):
        _check_address(host, shown)
    elif len(host) > _LONGEST_NAME or not all(map(_LABEL.fullmatch, labels)):
        raise EndpointError(
            shown, "got a host that is no name, expected letters, digits, hyphens and single dots"
        )


def _check_address(host: str, shown: str) -> None:
    """Take an address in its one usual spelling: every other is somebody's trick or mistake."""
    address = _address(host)
    mapped = address is not None and address.version == 6 and address.ipv4_mapped is not None
    if address is None or mapped or str(address) != host:
        raise EndpointError(
            shown, "got an address in an unusual spelling, expected one as 127.0.0.1 or [::1]"
        )
    if address.is_unspecified:
        raise EndpointError(
            shown,
            "got the address of every interface, expected one to dial: "
            "a server that listens there is reached at 127.0.0.1",
        )
    if address.is_multicast or host == "255.255.255.255":
        raise EndpointError(shown, "got an address of many hosts, expected that of one")


def _check_path(path: str, scheme: str, shown: str) -> None:
    if path and scheme in _WITHOUT_PATH:
        raise EndpointError(shown, f"got a path, expected none with {scheme}")
    segments = path.split("/")
    if len(path) > _LONGEST or not _PATH.fullmatch(path) or "." in segments or ".." in segments:
        raise EndpointError(
            shown,
            "got a path that may be read in two ways, expected letters, digits and -._~: "
            "between single slashes, and no '.' or '..'",
        )


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    if "%" in host:  # a zone: one machine's name for one of its cables
        return None
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
