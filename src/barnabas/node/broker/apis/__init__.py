"""The other APIs, one module for each."""
