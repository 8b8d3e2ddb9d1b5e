"""Rules for topic names. Source: Kafka's Topic class."""

import re

TOPIC_NAME_LENGTH_MAX = 249

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def invalid_topic_name_reason(name: str) -> str | None:
    """Why no topic can be called `name`, or None if one can."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        return (
            f"the length of '{name}' is longer than the max allowed length {TOPIC_NAME_LENGTH_MAX}"
        )
    if not _LEGAL.fullmatch(name):
        return (
            f"'{name}' contains one or more characters other than ASCII alphanumerics,"
            " '.', '_' and '-'"
        )
    return None


def is_valid_topic_name(name: str) -> bool:
    """Return whether a topic can be called `name`."""
    return invalid_topic_name_reason(name) is None


def metric_form(name: str) -> str:
    """The name as metrics write it, `.` as `_`; two topics may not share it (KAFKA-13743)."""
    return name.replace(".", "_")
