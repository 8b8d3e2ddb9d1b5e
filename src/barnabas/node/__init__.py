"""A node: one process, one event loop."""
