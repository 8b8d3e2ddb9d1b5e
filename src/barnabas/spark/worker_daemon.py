"""PySpark's daemon that forks worker processes, after importing the modules that workers need.

Each worker would import pandas, pyarrow and our runtime by itself, for one to two seconds, and a
query has up to two workers for each task of each of its stages. Forked workers have the modules at
once and share the memory. Spark runs this module as `spark.python.daemon.module`. Given the address
of a socket, it also forks the processes that forking.py asks for.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
from contextlib import suppress
from typing import Final

from barnabas.spark.archives import import_installed
from barnabas.spark.forking import SOCKET, listen_for_clients, serve_forks

_NEEDED = (
    "pandas",
    "pyarrow.pandas_compat",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.streaming.map_state_client",
    "pyspark.sql.streaming.proto.StateMessage_pb2",
    "pyspark.sql.streaming.stateful_processor_util",
    "barnabas.sql.spark.processor",
    "barnabas.sql.spark.worker",
    "barnabas.sql.functions.built_in",
)
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
"""Parameters of mallopt. Source: glibc's malloc.h."""
FREED_SIZE_BYTES_MAX: Final = 32 * 1024 * 1024
"""Of freed memory that a worker keeps."""
_MAPPED_SIZE_BYTES_MIN: Final = 16 * 1024 * 1024


def main() -> None:
    """Be the daemon until Spark ends it."""
    at = os.environ.get(SOCKET)
    # First of all: clients wait for a daemon that listens, and do without one that does not.
    listening = listen_for_clients(at) if at else None
    import_installed()
    from pyspark import daemon  # here: not from the archive

    keep_freed_memory()
    load()
    if listening is not None:
        serve_forks(listening)
    daemon.manager()  # type: ignore[no-untyped-call]  # PySpark's


def keep_freed_memory() -> None:
    """Have this process, and those that it forks, use freed memory again.

    By default glibc returns it to the system. A micro-batch of columns is some tens of arrays of a
    megabyte, and to get their pages again, one fault for each, took a worker a tenth of its time.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # another C library
        return
    mallopt(_TRIM_THRESHOLD, FREED_SIZE_BYTES_MAX)
    mallopt(_MMAP_THRESHOLD, _MAPPED_SIZE_BYTES_MIN)


def load() -> None:
    """Read the modules, as far as they are installed."""
    for name in _NEEDED:
        with suppress(ImportError):
            importlib.import_module(name)
    # A worker's collector never looks at objects that exist now, which would also copy them.
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    main()
