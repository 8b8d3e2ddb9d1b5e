"""What runs on a node's event loop: promises, pauses, turns and rates."""
