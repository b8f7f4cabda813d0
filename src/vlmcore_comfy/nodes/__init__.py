"""The nodes, one module a theme: each reads its widgets, calls the core and returns."""
