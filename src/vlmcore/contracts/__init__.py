"""
What robots report and accept: embodiments, observations, action chunks, and their documents.

Contracts are facts. They are frozen, their arrays are their own and cannot be written to, and what
is not true cannot be made. Whether an action is safe is not asked here.
"""
