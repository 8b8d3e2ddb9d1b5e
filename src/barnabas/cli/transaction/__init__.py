"""Commands of `barnabas transaction`."""
