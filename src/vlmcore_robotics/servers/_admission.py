"""Who may speak to a server: no page in a browser, and only who has the key where there is one."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Sequence

import attrs

from vlmcore._arguments import require_kind
from vlmcore._arrays import as_tuple, require_names
from vlmcore.secrets import Secret

__all__ = ["Admission", "Refusal"]

_MOST_HOSTS = 64
_LONGEST = 253


@attrs.frozen(kw_only=True)
class Refusal:
    """
    Why somebody may not speak.

    Attributes:
        status: The status code of HTTP.
        words: For people.
    """

    status: int
    words: str


@attrs.frozen(kw_only=True)
class Admission:
    """
    Looks at the headers of a request.

    A page in a browser can open a connection to a server on the same machine. It always says where
    it comes from, in ``Origin``, and nobody else does, so whoever says so is refused. A page whose
    name was made to lead here says that name in ``Host``; an address or ``localhost`` cannot be
    made to lead elsewhere, and other names are refused unless they are among *hosts*.

    Attributes:
        hosts: Other names of the server, as the one of a gateway before it.
        key: What has to be shown, if anything.
        key_scheme: What stands before it in ``Authorization``.

    Raises:
        ContractError: If a field is not as described.
    """

    hosts: tuple[str, ...] = attrs.field(default=(), converter=as_tuple)
    key: Secret | None = None
    key_scheme: str = "Bearer"

    def __attrs_post_init__(self) -> None:
        if self.hosts != ():
            require_names("hosts", self.hosts, max_count=_MOST_HOSTS, max_characters=_LONGEST)
        if self.key is not None:
            require_kind("key", self.key, Secret)

    def refusal(
        self,
        *,
        hosts: Sequence[str],
        origins: Sequence[str],
        authorizations: Sequence[str] | None,
    ) -> Refusal | None:
        """
        Say why a request is refused, or ``None`` if it is not.

        Args:
            hosts: The values of ``Host``, as many as came.
            origins: Those of ``Origin``.
            authorizations: Those of ``Authorization``; ``None`` if no key has to be shown.
        """
        if origins:
            return Refusal(status=403, words="pages in browsers may not speak to this server")
        if len(hosts) != 1 or not self._knows(hosts[0]):
            return Refusal(
                status=421, words="this server is not known by that name, use its address"
            )
        if authorizations is not None and self.key and not self._opens(self.key, authorizations):
            return Refusal(status=401, words=f"expected Authorization: {self.key_scheme} <key>")
        return None

    def _knows(self, host: str) -> bool:
        name, _, port = host.rpartition(":")
        if not (name and port.isdigit()):
            name = host
        name = name.lower().removesuffix(".")
        if name in (other.lower() for other in self.hosts):
            return True
        if name == "localhost" or name.endswith(".localhost"):
            return True
        try:
            ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
        except ValueError:
            return False
        return True

    def _opens(self, key: Secret, authorizations: Sequence[str]) -> bool:
        """Compare in a time that does not tell how much of it was right."""
        shown = "".join(authorizations) if len(authorizations) == 1 else ""
        scheme, _, rest = shown.partition(" ")
        is_key = hmac.compare_digest(
            rest.strip().encode("utf-8", "surrogateescape"), key.reveal().encode()
        )
        return is_key and scheme.lower() == self.key_scheme.lower()
