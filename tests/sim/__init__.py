"""Stand-ins for clock, disk and network, beneath the whole platform."""
