"""
The speed lab: whether a faster way to run a model may replace today's.

A speed-up counts only where the answers stayed good, on the same inputs.
"""
