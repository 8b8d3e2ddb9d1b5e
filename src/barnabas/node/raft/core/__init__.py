"""The quorum's state machine: pure, so that a simulator can run it."""
