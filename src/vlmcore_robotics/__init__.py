"""Policy clients and servers for robots; see the changelog for what is here yet."""
