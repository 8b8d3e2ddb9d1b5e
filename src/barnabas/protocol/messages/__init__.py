"""Every message of the protocol, a module per API or per kind of record."""
