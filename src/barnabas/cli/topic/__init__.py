"""Commands of `barnabas topic`."""
