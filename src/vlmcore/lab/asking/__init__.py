"""Those who are asked: a model in this process, or one behind a server."""
