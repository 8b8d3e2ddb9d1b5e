"""How fast a client may be: limits, what was measured against them, how long it must wait."""
