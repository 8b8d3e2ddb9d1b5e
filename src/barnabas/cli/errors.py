"""Failures as the command line shows them: one line, and an exit code that says what kind."""

import enum
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from barnabas.base.errors import ShownError, install_hint


class ExitCode(enum.IntEnum):
    """The exit codes of all commands."""

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
    """An error in one line, with a hint if one is known."""

    def __init__(
        self, message: str, code: ExitCode = ExitCode.REFUSED, hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint

    def parts(self) -> tuple[str, str]:
        """Message, and `; hint` or nothing, for one line."""
        return " ".join(self.message.split()), f"; {self.hint}" if self.hint else ""

    def line(self) -> str:
        """Message and hint on one line."""
        return "".join(self.parts())


NOT_FOUND_CODES = frozenset(
    {"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "GROUP_ID_NOT_FOUND"}
)
"""Of the client library's names."""
UNREACHABLE_CODES = frozenset(
    {"_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT", "_RESOLVE", "_MSG_TIMED_OUT"}
    | {"_TIMED_OUT_QUEUE", "REQUEST_TIMED_OUT", "_AUTHENTICATION", "_SSL"}
)
LOCAL_ERRORS: dict[str, tuple[str, str]] = {
    "_TRANSPORT": ("NETWORK_EXCEPTION", "the connection to the broker failed"),
    "_ALL_BROKERS_DOWN": ("NETWORK_EXCEPTION", "no broker can be reached"),
    "_RESOLVE": ("NETWORK_EXCEPTION", "the host name of a broker cannot be resolved"),
    "_TIMED_OUT": ("REQUEST_TIMED_OUT", "no answer in time"),
    "_TIMED_OUT_QUEUE": ("REQUEST_TIMED_OUT", "no answer in time"),
    "_MSG_TIMED_OUT": ("REQUEST_TIMED_OUT", "the record was not acknowledged in time"),
    "_UNKNOWN_TOPIC": ("UNKNOWN_TOPIC_OR_PARTITION", "there is no such topic"),
    "_UNKNOWN_PARTITION": ("UNKNOWN_TOPIC_OR_PARTITION", "there is no such partition"),
    "_AUTHENTICATION": ("SASL_AUTHENTICATION_FAILED", "the login failed"),
    "_SSL": ("", "TLS failed"),
    "_FENCED": ("PRODUCER_FENCED", "another producer with this transactional id took over"),
    "_MAX_POLL_EXCEEDED": ("", "more than max.poll.interval.ms passed between reads"),
    "_WAIT_COORD": ("COORDINATOR_NOT_AVAILABLE", "the coordinator cannot be reached"),
    "_BAD_MSG": ("CORRUPT_MESSAGE", "a record batch is damaged"),
    "_BAD_COMPRESSION": ("CORRUPT_MESSAGE", "a batch cannot be decompressed"),
    "_AUTO_OFFSET_RESET": ("OFFSET_OUT_OF_RANGE", "the log holds nothing at the offset"),
    "_UNSUPPORTED_FEATURE": ("UNSUPPORTED_VERSION", "the broker does not support this"),
}
"""What librdkafka calls errors that it finds itself: Kafka's name, where it has one, and words."""
_CONFIG_ERRORS = frozenset({"_INVALID_ARG", "_CONFLICT"})


def _kafka_name(code: int, name: str) -> str:
    """Kafka's name of an error of the client library; empty where Kafka has none."""
    if code < 0:
        return LOCAL_ERRORS.get(name, ("", ""))[0]
    from barnabas.protocol.errors import ErrorCode

    known = ErrorCode.of(code)
    return known.name if int(known) == code else name


def _words(error: Any, code: int, name: str) -> str:
    """The text that came with an error; in our words where it is only librdkafka's standard one."""
    text = str(error.str()) if hasattr(error, "str") else str(error)
    if name and (text == type(error)(code).str() or name == "_ALL_BROKERS_DOWN"):
        if name in LOCAL_ERRORS:
            return LOCAL_ERRORS[name][1]
        if code > 0:
            from barnabas.protocol.errors import ErrorCode

            known = ErrorCode.of(code)
            if int(known) == code:
                return known.message.rstrip(".")
    rest = _without_library(text)
    is_librdkafkas = name in LOCAL_ERRORS and rest != text
    return f"{LOCAL_ERRORS[name][1]}: {rest}" if is_librdkafkas else rest


def _without_library(text: str) -> str:
    """A text without librdkafka's thread, and its words for where an error was found."""
    text = re.sub(r"^\[thrd:[^\]]*\]: ", "", text)
    return re.sub(r"\b(?:Local|Broker): ", "", text)


def from_kafka(error: object, what: str = "") -> CliError:
    """A CliError for a KafkaException or KafkaError of the client library, in Kafka's names."""
    args = getattr(error, "args", ())
    kafka_error: Any = args[0] if args and hasattr(args[0], "name") else error
    is_named = hasattr(kafka_error, "name") and hasattr(kafka_error, "code")
    name = str(kafka_error.name()) if is_named else ""
    number = int(kafka_error.code()) if is_named else 0
    if name in NOT_FOUND_CODES:
        code = ExitCode.NOT_FOUND
    elif name in UNREACHABLE_CODES:
        code = ExitCode.UNREACHABLE
    elif name in _CONFIG_ERRORS:
        code = ExitCode.USAGE
    else:
        code = ExitCode.REFUSED
    shown = _kafka_name(number, name)
    text = _words(kafka_error, number, name)
    message = f"{text} [{shown}]" if shown else text
    return CliError(f"{what}: {message}" if what else message, code)


def use_kafkas_words(error: CliError) -> None:
    """Put Kafka's names into a message that another room took from the client library.

    Such a CliError has the KafkaException among its causes.
    """
    cause: BaseException | None = error
    while cause is not None:
        if type(cause).__name__ == "KafkaException" and cause.args:
            known = from_kafka(cause)
            text = str(cause.args[0].str()) if hasattr(cause.args[0], "str") else ""
            if text and known.message not in error.message:
                error.message = error.message.replace(text, known.message)
        cause = cause.__cause__
    error.message = _without_library(error.message)


def from_exception(error: Exception) -> CliError | None:
    """A CliError for what users can cause; None for a defect of Barnabas."""
    if isinstance(error, CliError):
        return error
    if type(error).__name__ in ("KafkaException", "KafkaError"):
        return from_kafka(error)
    if isinstance(error, ShownError):
        code = ExitCode.USAGE if error.is_wrong_usage else ExitCode.REFUSED
        return CliError(str(error), code, error.hint)
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return CliError(f"{error.filename}: {error.strerror}", ExitCode.NOT_FOUND)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return CliError(f"{where}{error.strerror or error}")
    return None


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
        ErrorCode.GROUP_ID_NOT_FOUND: ExitCode.NOT_FOUND,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: ExitCode.NOT_FOUND,
        ErrorCode.COORDINATOR_NOT_AVAILABLE: ExitCode.UNREACHABLE,
        ErrorCode.REQUEST_TIMED_OUT: ExitCode.UNREACHABLE,
    }.get(error, ExitCode.REFUSED)
    return CliError(f"{what}: {text}" if what else text, kind)


@contextmanager
def extra_packages(extra: str, needs: str) -> Iterator[None]:
    """Import inside; raises CliError, which begins with `needs`, where a package is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("barnabas"):
            raise
        raise CliError(
            f"{needs} {error.name}, which is not installed",
            hint=install_hint(extra),
        ) from error
