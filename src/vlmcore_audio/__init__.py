"""A client for music generation services; see the changelog for what is here yet."""
