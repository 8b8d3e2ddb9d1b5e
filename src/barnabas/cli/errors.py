"""Failures as the command line shows them: one line, and an exit code that says what kind."""

import enum
from typing import NoReturn

from barnabas.base.config.errors import ConfigError


class ExitCode(enum.IntEnum):
    """What a script can tell from the exit code of every command."""

    DONE = 0
    REFUSED = 1
    """The cluster or the data did not allow it."""
    USAGE = 2
    """The command line or a file it names is wrong."""
    UNREACHABLE = 3
    """No broker answered, or not in time."""
    NOT_FOUND = 4
    """The topic, group, file or other thing does not exist."""
    PROBLEMS = 5
    """The check that was asked for found problems."""
    INTERNAL = 70
    """A defect of Barnabas."""
    INTERRUPTED = 130
    """Ctrl-C."""


class CliError(Exception):
    """What went wrong, in one line, with what to do about it where that is known."""

    def __init__(
        self, message: str, code: ExitCode = ExitCode.REFUSED, hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint

    def line(self) -> str:
        """Message and hint on one line."""
        text = " ".join(self.message.split())
        return f"{text}; {self.hint}" if self.hint else text


NOT_FOUND_CODES = frozenset(
    {"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "GROUP_ID_NOT_FOUND"}
)
UNREACHABLE_CODES = frozenset(
    {"_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT", "_RESOLVE", "_MSG_TIMED_OUT"}
    | {"_TIMED_OUT_QUEUE", "REQUEST_TIMED_OUT", "_AUTHENTICATION", "_SSL"}
)


def from_kafka(error: object, what: str = "") -> CliError:
    """A CliError for a KafkaException or KafkaError of the client library."""
    args = getattr(error, "args", ())
    kafka_error = args[0] if args and hasattr(args[0], "name") else error
    name = kafka_error.name() if hasattr(kafka_error, "name") else ""
    text = kafka_error.str() if hasattr(kafka_error, "str") else str(error)
    if name in NOT_FOUND_CODES:
        code = ExitCode.NOT_FOUND
    elif name in UNREACHABLE_CODES:
        code = ExitCode.UNREACHABLE
    else:
        code = ExitCode.REFUSED
    text = text.removeprefix("Broker: ").removeprefix("Local: ")
    message = f"{text} [{name}]" if name and not name.startswith("_") else text
    return CliError(f"{what}: {message}" if what else message, code)


def from_exception(error: Exception) -> CliError | None:
    """A CliError for what users can cause; None for a defect of Barnabas."""
    if isinstance(error, CliError):
        return error
    if type(error).__name__ in ("KafkaException", "KafkaError"):
        return from_kafka(error)
    if isinstance(error, ConfigError):
        return CliError(str(error), ExitCode.USAGE)
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return CliError(f"{error.filename}: {error.strerror}", ExitCode.NOT_FOUND)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return CliError(f"{where}{error.strerror or error}")
    if type(error).__name__ in NODE_FAILURES:
        return CliError(str(error))
    return None


NODE_FAILURES = frozenset(
    {
        "BootstrapError",
        "CorruptCheckpointError",
        "CorruptFileError",
        "DirectoryInUseError",
        "DuplicateNodeIdError",
        "ForeignClusterError",
        "FormatError",
        "LogDirFailure",
        "MetaPropertiesError",
        "MetadataLogError",
        "QuorumStateError",
        "RegistrationError",
        "ReplayError",
        "SnapshotError",
        "StartError",
        "UnsupportedFeatureError",
        "VotersError",
    }
)
"""Errors with which other rooms say why a node cannot start; known by name, so that showing
an error imports none of those rooms."""


def fail(message: str, code: ExitCode = ExitCode.REFUSED, hint: str | None = None) -> NoReturn:
    """Raise a CliError."""
    raise CliError(message, code, hint)


def from_code(code: int, message: str | None, what: str = "") -> CliError:
    """A CliError for an error code of Kafka's protocol, with the text that came with it."""
    from barnabas.protocol.errors import ErrorCode

    error = ErrorCode.of(code)
    text = f"{message or error.message} [{error.name}]"
    kind = {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ExitCode.NOT_FOUND,
        ErrorCode.BROKER_ID_NOT_REGISTERED: ExitCode.NOT_FOUND,
        ErrorCode.VOTER_NOT_FOUND: ExitCode.NOT_FOUND,
        ErrorCode.REQUEST_TIMED_OUT: ExitCode.UNREACHABLE,
    }.get(error, ExitCode.REFUSED)
    return CliError(f"{what}: {text}" if what else text, kind)
