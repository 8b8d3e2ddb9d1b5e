"""Produce: from frame to log, and the answer once enough replicas have it."""
