"""Exceptions of the log room. Bad data from clients is a value (ErrorCode), never an exception."""

from barnabas.base.errors import ShownError


class LogDirFailure(ShownError):  # noqa: N818  # the word of Kafka's LogDirFailureChannel
    """A log directory failed and is offline; the node lives on with the others.

    Callers answer KAFKA_STORAGE_ERROR.
    """

    def __init__(self, directory: str, cause: OSError | None = None) -> None:
        super().__init__(f"log directory {directory} is offline" + (f": {cause}" if cause else ""))
        self.directory = directory
        self.cause = cause


class CorruptFileError(ShownError):
    """One of the log's own files does not hold what it must. The caller rebuilds it."""


class CorruptIndexError(CorruptFileError):
    """An index whose entries cannot be true."""


class CorruptSnapshotError(CorruptFileError):
    """A producer snapshot that is cut off, of an unknown version, or fails its CRC."""


class CorruptCheckpointError(CorruptFileError):
    """A checkpoint or metadata file that is malformed."""
