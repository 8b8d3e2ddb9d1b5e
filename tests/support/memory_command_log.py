"""A command log in memory."""

from barnabas.sql.engine.command_log import LogEntry, OvertakenError


class MemoryCommandLog:
    """Two engines may share it by sharing `entries`."""

    step = 1

    def __init__(self, entries: list[LogEntry] | None = None) -> None:
        self.entries = [] if entries is None else entries
        self._read = 0

    def read_new(self) -> list[LogEntry]:
        new = self.entries[self._read :]
        self._read = len(self.entries)
        return new

    def next_sequence(self) -> int:
        return len(self.entries)

    def append(self, key: bytes, value: bytes) -> int:
        if self._read < len(self.entries):
            raise OvertakenError("another server has written a statement")
        self.entries.append(LogEntry(len(self.entries), key, value))
        self._read = len(self.entries)
        return self._read - 1

    def close(self) -> None:
        pass
