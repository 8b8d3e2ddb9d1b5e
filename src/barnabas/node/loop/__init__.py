"""Building blocks of a node's event loop: promises, pauses, turns and rates."""
