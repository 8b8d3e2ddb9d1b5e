"""A node's configuration: its keys, their values, the rules between them, TLS by listener."""
