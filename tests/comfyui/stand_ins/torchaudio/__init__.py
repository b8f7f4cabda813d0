"""Stands in for torchaudio; see `pretended`."""

from pretended import pretend

pretend(__name__)
