"""An image as a job sees it: read, told by its bytes, decoded, made smaller."""

from __future__ import annotations

import hashlib

import attrs

from vlmcore._arrays import UInt8Array
from vlmcore.errors import ContractError, MediaError
from vlmcore.jobs.items import Item, Stamp
from vlmcore.jobs.likeness import likeness_of
from vlmcore.media.budgets import PixelBudget
from vlmcore.media.images import load_image

__all__ = ["Looking", "Seen"]


@attrs.frozen(kw_only=True)
class Seen:
    """
    What was seen of an image.

    Attributes:
        item: The image.
        stamp: That of its file, taken before it was read.
        digest: SHA-256 of its bytes; ``None`` if they could not be read.
        pixels: What a model is shown; ``None`` if it was not decoded.
        size_px: Its width and height as it came, upright.
        identity: SHA-256 of its size and pixels as they came, if that was wanted.
        likeness: As `vlmcore.jobs.likeness.likeness_of` says, if that was wanted.
        problem: Why it could not be read; empty if it could.
    """

    item: Item
    stamp: Stamp | None
    digest: bytes | None = None
    pixels: UInt8Array | None = attrs.field(default=None, repr=False)
    size_px: tuple[int, int] | None = None
    identity: bytes | None = None
    likeness: bytes | None = None
    problem: str = ""

    @property
    def held_bytes(self) -> int:
        """The memory that its pixels take."""
        return 0 if self.pixels is None else int(self.pixels.nbytes)


@attrs.frozen(kw_only=True)
class Looking:
    """
    How images are looked at. It may be called by many threads.

    Attributes:
        budget: How large a picture may be.
        wants_identity: Whether pictures with the same pixels are looked for.
        wants_likeness: Whether pictures are looked for that are like others.
    """

    budget: PixelBudget
    wants_identity: bool
    wants_likeness: bool

    def look(self, item: Item, done: bytes | None = None) -> Seen:
        """
        Look at an image; one that cannot be read is seen, too.

        Args:
            item: The image.
            done: The digest of bytes of which all is known: they are not decoded again.

        Raises:
            MissingDependencyError: If what decodes images is not installed.
        """
        stamp = item.content.stamp()
        digest = None
        try:
            encoded = item.content.read()
            digest = hashlib.sha256(encoded.data).digest()
            if digest == done:
                return Seen(item=item, stamp=stamp, digest=digest)
            return self._seen(item, stamp, digest, load_image(encoded))
        except (MediaError, ContractError) as error:
            return Seen(item=item, stamp=stamp, digest=digest, problem=error.problem)
        except MemoryError:
            problem = "there is no memory to decode it"
            return Seen(item=item, stamp=stamp, digest=digest, problem=problem)

    def _seen(self, item: Item, stamp: Stamp | None, digest: bytes, pixels: UInt8Array) -> Seen:
        return Seen(
            item=item,
            stamp=stamp,
            digest=digest,
            pixels=self.budget.apply(pixels),
            size_px=(pixels.shape[1], pixels.shape[0]),
            identity=_identity(pixels) if self.wants_identity else None,
            likeness=likeness_of(pixels) if self.wants_likeness else None,
        )


def _identity(pixels: UInt8Array) -> bytes:
    digest = hashlib.sha256(f"{pixels.shape}".encode())
    digest.update(pixels.data)
    return digest.digest()
