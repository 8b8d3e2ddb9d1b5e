"""The node's loggers as configuration (KIP-412): Python's, under Kafka's names for levels."""

import logging
from collections.abc import Sequence

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.configs import AlterableConfig

ROOT = "root"
LEVELS = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
SET, DELETE = 0, 1

Outcome = tuple[ErrorCode, str | None]


def logger_levels() -> dict[str, str]:
    """The level that holds for each logger, the root's included."""
    levels = {ROOT: _name_of(logging.getLogger().level)}
    for name, logger in sorted(logging.root.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger):
            levels[name] = _name_of(logger.getEffectiveLevel())
    return levels


def alter_loggers(configs: Sequence[AlterableConfig], *, validate_only: bool) -> Outcome:
    """Set levels, or let loggers follow those above them again; all or none."""
    known = logger_levels()
    for config in configs:
        outcome = _check(config, known)
        if outcome is not None:
            return outcome
    if not validate_only:
        for config in configs:
            level = LEVELS[config.value or ""] if config.config_operation == SET else 0
            logging.getLogger(None if config.name == ROOT else config.name).setLevel(level)
    return ErrorCode.NONE, None


def _check(config: AlterableConfig, known: dict[str, str]) -> Outcome | None:
    if config.config_operation not in (SET, DELETE):
        return (
            ErrorCode.INVALID_REQUEST,
            "Loggers can be set and deleted only; they are no lists.",
        )
    if config.name not in known:
        return ErrorCode.INVALID_CONFIG, f"Logger {config.name} does not exist!"
    if config.config_operation == SET and config.value not in LEVELS:
        valid = ", ".join(sorted(LEVELS))
        message = f"{config.value} is no log level for {config.name}. Valid are {valid}"
        return ErrorCode.INVALID_CONFIG, message
    if config.config_operation == DELETE and config.name == ROOT:
        return (
            ErrorCode.INVALID_REQUEST,
            f"Removing the log level of the {ROOT} logger is not allowed",
        )
    return None


def _name_of(level: int) -> str:
    """The nearest of Kafka's levels that lets no more through."""
    for name, number in LEVELS.items():
        if level <= number:
            return name
    return "FATAL"
