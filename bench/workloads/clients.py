"""Clients of ours that are processes of their own, as modules of `bench`."""

import subprocess
import sys

from bench.settings import ROOT
from bench.workloads.session import Session


def run_client(module: str, session: Session, *arguments: object) -> str:
    """Run `bench.<module>` with the server's port and `arguments`; what it printed.

    Raises RuntimeError if it fails or takes too long.
    """
    command = [sys.executable, "-m", f"bench.{module}", session.server.bootstrap]
    command += map(str, arguments)
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            timeout=session.settings.timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"{module} took over {error.timeout:g} s") from error
    if done.returncode:
        raise RuntimeError(f"{module} ended with {done.returncode}")
    return done.stdout
