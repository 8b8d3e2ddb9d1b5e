"""The connectors, one module or folder per system."""
