"""The replication connection, and the thread that reads from it.

The thread reads ahead, up to a bound. At intervals it reports to the server how far the log is
stored, also during a long micro-batch: a silent client is disconnected.
"""

from __future__ import annotations

import select
import threading
import time
from collections import deque
from struct import Struct
from typing import Final

import psycopg

from barnabas.connect.connectors.postgres.pgoutput import POSTGRES_EPOCH_US
from barnabas.connect.connectors.postgres.positions import lsn_text
from barnabas.connect.connectors.postgres.server import (
    command,
    connect_for_replication,
    failure,
    literal,
    of_text,
    quoted,
)
from barnabas.connect.connectors.postgres.settings import PostgresSettings
from barnabas.schemas.data.errors import ConnectError

WAIT_S: Final = 0.2
"""Time after which the thread checks whether it is to end."""
_HEADER_SIZE: Final = 25
_START: Final = Struct(">xQ")
_REPLY: Final = Struct(">cQQQqB")
DATA, KEEPALIVE = ord("w"), ord("k")

Received = tuple[int, "bytes | None"]
"""A message's place in the log and the message; None: all before the place was sent."""


class LogStream:
    """Reads the log from a place on."""

    def __init__(self, settings: PostgresSettings, start: int) -> None:
        """Connect and start. Raises RetriableError, ConnectError."""
        self._settings = settings
        self._confirmed = start
        self._changed = threading.Condition()
        self._queue: deque[Received] = deque()
        self._queue_size_bytes = 0
        self._error: ConnectError | None = None
        self._is_closing = False
        self._connection = connect_for_replication(settings)
        try:
            command(self._connection, self._start_command(start))
        except BaseException:
            self._connection.finish()
            raise
        self._thread = threading.Thread(
            target=self._run, name=f"postgres {settings.topic_prefix}", daemon=True
        )
        self._thread.start()

    def take(self, count_max: int, wait_s: float) -> list[Received]:
        """Return what has been read, at most so many messages. Raises what ended the stream."""
        with self._changed:
            if not self._queue and self._error is None:
                self._changed.wait(wait_s)
            if not self._queue and self._error is not None:
                raise self._error
            taken = [self._queue.popleft() for _ in range(min(count_max, len(self._queue)))]
            self._queue_size_bytes -= sum(len(data) for _lsn, data in taken if data is not None)
            self._changed.notify_all()
        return taken

    def confirm(self, lsn: int) -> None:
        """All before this place is stored: the server need not keep it."""
        with self._changed:
            self._confirmed = max(self._confirmed, lsn)

    def close(self) -> None:
        """Tell the server how far we came, and end the connection."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join()
        self._connection.finish()

    def _start_command(self, start: int) -> str:
        settings = self._settings
        options = {"proto_version": "1", "publication_names": quoted(settings["publication.name"])}
        if self._connection.server_version >= 140_000:
            options["messages"] = "true"
        for pair in filter(None, (settings["slot.stream.params"] or "").split(";")):
            name, _, value = pair.partition("=")
            options[name.strip()] = value.strip()
        listed = ", ".join(f"{quoted(name)} {literal(value)}" for name, value in options.items())
        slot = quoted(settings["slot.name"])
        return f"START_REPLICATION SLOT {slot} LOGICAL {lsn_text(start)} ({listed})"

    def _run(self) -> None:
        interval_s = self._settings["status.update.interval.ms"] / 1000
        due = time.monotonic() + interval_s
        told = -1
        try:
            while not self._is_closing:
                if time.monotonic() >= due or self._confirmed != told:
                    told = self._confirmed
                    due = time.monotonic() + interval_s
                    self._tell()
                if self._is_full():
                    with self._changed:
                        self._changed.wait(WAIT_S)
                    continue
                if not self._read():
                    select.select([self._connection.socket], [], [], WAIT_S)
                    self._connection.consume_input()
            self._tell()
        except ConnectError as error:
            self._fail(error)
        except psycopg.Error as error:
            self._fail(failure(error))
        except (OSError, ValueError) as error:  # the socket is closed
            self._fail(of_text(str(error)))

    def _fail(self, error: ConnectError) -> None:
        with self._changed:
            self._error = error
            self._changed.notify_all()

    def _is_full(self) -> bool:
        limit = self._settings["max.queue.size.in.bytes"]
        is_long = len(self._queue) >= self._settings["max.queue.size"]
        return bool(is_long or 0 < limit <= self._queue_size_bytes)

    def _read(self) -> bool:
        """Take what libpq has; whether there was anything."""
        size, data = self._connection.get_copy_data(1)
        if size == 0:
            return False
        if size < 0:
            result = self._connection.get_result()
            text = b"" if result is None else result.get_error_message().encode()
            raise of_text(text.decode() or "the server ended the replication")
        (lsn,) = _START.unpack_from(data)
        if data[0] == DATA:
            payload = bytes(data[_HEADER_SIZE:])
            with self._changed:
                self._queue.append((lsn, payload))
                self._queue_size_bytes += len(payload)
                self._changed.notify_all()
        elif data[0] == KEEPALIVE:
            with self._changed:
                if self._queue and self._queue[-1][1] is None:
                    self._queue.pop()
                self._queue.append((lsn, None))
                self._changed.notify_all()
            if data[17]:  # it wants an answer
                self._tell()
        return True

    def _tell(self) -> None:
        lsn = self._confirmed
        now = time.time_ns() // 1000 - POSTGRES_EPOCH_US
        self._connection.put_copy_data(_REPLY.pack(b"r", lsn, lsn, lsn, now, 0))
        while self._connection.flush():
            select.select([], [self._connection.socket], [], WAIT_S)
