"""The machine of one share partition: no clock, disk, network or task."""
