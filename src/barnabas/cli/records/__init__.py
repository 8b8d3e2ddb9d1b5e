"""Commands that write and read records."""
