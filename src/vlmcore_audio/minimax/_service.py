"""What the service is called in errors."""

__all__ = ["SERVICE"]

SERVICE = "MiniMax"
