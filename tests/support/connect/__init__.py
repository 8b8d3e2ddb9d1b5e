"""What tests of connectors share: the servers that connectors read and write."""
