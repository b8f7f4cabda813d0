"""Wire formats of policy servers: bytes to contracts and back, with limits, no socket, no clock."""
