"""The other APIs, a module per family."""
