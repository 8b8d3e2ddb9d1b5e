"""Every message of the protocol, a module per family of APIs or kind of record."""
