"""What each API demands of its caller, and a world in which that can be tried."""
