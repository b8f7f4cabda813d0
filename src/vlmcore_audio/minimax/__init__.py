"""MiniMax, a service that makes music: what it is asked, and how its answers are read."""
