"""APIs of consumer, share and streams groups, and of their offsets."""
