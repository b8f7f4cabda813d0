"""Which protocol is spoken on a port, as far as it says itself when it is asked in HTTP."""

from __future__ import annotations

import contextlib
import enum
import socket
import ssl
import time

from vlmcore.endpoint import Endpoint

__all__ = ["Spoken", "spoken_at"]

_MOST_BYTES = 1024
_HEALTH = "/healthz"
_METADATA = "/v1/metadata"


class Spoken(enum.Enum):
    """What seems to be spoken on a port; the value is what it is called."""

    OPENPI = "openpi"
    HTTP = "the HTTP protocol of policies"
    GROOT = "ZeroMQ, as GR00T does"
    TLS = "TLS"
    SSH = "SSH"
    OTHER_HTTP = "HTTP, and it is no policy server"
    SILENCE = "nothing at all"
    OTHER = "something else"

    @property
    def protocol(self) -> str:
        """The protocol of policies that it is; empty if it is none."""
        names = {Spoken.OPENPI: "openpi", Spoken.HTTP: "http", Spoken.GROOT: "groot"}
        return names.get(self, "")


_FINE = 200
# What a peer says first that has not understood a word: of ZeroMQ before it has heard anything
# (ZMTP 3.1, section 3.2), of TLS an alert, or its own hello.
_STARTS = {
    b"\xff": Spoken.GROOT,
    b"\x15\x03": Spoken.TLS,
    b"\x16\x03": Spoken.TLS,
    b"SSH-": Spoken.SSH,
}


def spoken_at(endpoint: Endpoint, *, timeout_s: float) -> Spoken:
    """
    Ask for the health of what listens there, and tell from its first bytes what it is.

    The token is not sent. A certificate is not looked at: that is what a client does.

    Raises:
        OSError: If nothing listens there.
    """
    heard = _heard(endpoint, _HEALTH, timeout_s)
    for start, spoken in _STARTS.items():
        if heard.startswith(start):
            return spoken
    if not heard.startswith(b"HTTP/1."):
        return Spoken.OTHER if heard else Spoken.SILENCE
    if b"HTTP request to an HTTPS" in heard or b"HTTPS server" in heard:
        return Spoken.TLS
    status, body = _status(heard), heard.partition(b"\r\n\r\n")[2].strip()
    if (status, body) == (_FINE, b"OK"):
        return Spoken.OPENPI
    told = _status(_heard(endpoint, _METADATA, timeout_s))
    is_policy = told in (_FINE, 401, 403) or (status == _FINE and b'"status"' in body)
    return Spoken.HTTP if is_policy else Spoken.OTHER_HTTP


def _status(heard: bytes) -> int:
    code = heard.split(b" ", 2)[1:2]
    return int(code[0]) if code and code[0].isdigit() and len(code[0]) == 3 else 0


def _heard(endpoint: Endpoint, path: str, timeout_s: float) -> bytes:
    """Ask, and take the first bytes that come, until the peer hangs up or the time is over."""
    ends_s = time.monotonic() + timeout_s
    heard = b""
    plain = socket.create_connection((endpoint.address, endpoint.port), timeout_s)
    with contextlib.suppress(OSError), plain, _encrypted(plain, endpoint) as line:
        line.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {endpoint.host_header}\r\n"
            "Connection: close\r\n\r\n".encode()
        )
        while len(heard) < _MOST_BYTES and not heard.startswith(b"\xff"):
            line.settimeout(max(ends_s - time.monotonic(), 0.001))
            data = line.recv(_MOST_BYTES)
            if not data:
                break
            heard += data
    return heard


def _encrypted(plain: socket.socket, endpoint: Endpoint) -> socket.socket:
    if endpoint.scheme not in ("wss", "https"):
        return plain
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(plain, server_hostname=endpoint.host)
