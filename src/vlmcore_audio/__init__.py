"""Clients of services that make music: what is asked of them, and the clips that come."""
