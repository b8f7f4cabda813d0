"""Stands in for torchvision; see `pretended`."""

from pretended import pretend

pretend(__name__)
