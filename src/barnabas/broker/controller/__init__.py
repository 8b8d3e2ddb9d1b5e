"""What the listener of a controller serves."""
