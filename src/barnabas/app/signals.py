"""Signals that stop a node."""

import signal
from typing import Final

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""SIGHUP: the terminal was closed."""
