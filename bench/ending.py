"""The end of a process that a measurement has started."""

import os
import signal
import subprocess

STOP_TIMEOUT_SECONDS = 60.0


def end_group(process: "subprocess.Popen[bytes] | None") -> None:
    """SIGTERM to the process's group, SIGKILL if it does not listen; harmless after its end."""
    if process is None or process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(STOP_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
