"""Commands for groups: consumer groups, share groups, Streams groups."""
