"""Commands that wait until a cluster has come to what they asked of it."""

import time
from collections.abc import Callable

from barnabas.cli.admin import Admin

POLL_S = 0.25


def wait_until(admin: Admin, condition: Callable[[], bool], timeout_s: float) -> bool:
    """Look again and again; False when time is up."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        admin.pause(POLL_S)
    return True
