"""The guardian: ends the demo's processes when the demo itself was killed.

It reads lines of `<grace seconds> <pid> <start time>` from its standard input, one per started
process. The pipe's other end is held by the orchestrator alone, so it closes however the
orchestrator ends, SIGKILL included; then every process still alive is ended, the last one started
first. A line `done` says that the orchestrator ended them all itself.
"""

from __future__ import annotations

import signal
import sys

from barnabas.demo.identity import ProcessIdentity, end_group


def main() -> None:
    """Wait for the orchestrator's end and clear up after it."""
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    wards: list[tuple[float, ProcessIdentity]] = []
    for line in sys.stdin:
        if line.strip() == "done":
            return
        grace, pid, started = line.strip().split(" ", 2)
        wards.append((float(grace), ProcessIdentity(int(pid), started)))
    for grace_seconds, identity in reversed(wards):
        end_group(identity, grace_seconds)


if __name__ == "__main__":
    main()
