"""The rights that each API requires of its caller, and a world in which to try them."""
