"""The nodes of vlmcore: https://pypi.org/project/vlmcore."""

from vlmcore_comfy import WEB_DIRECTORY, comfy_entrypoint

__all__ = ["WEB_DIRECTORY", "comfy_entrypoint"]
