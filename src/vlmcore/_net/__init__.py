"""Connections of every client: one look-up, one deadline, no proxy; whatever is said on them."""
