"""Commands of `barnabas sql`."""
