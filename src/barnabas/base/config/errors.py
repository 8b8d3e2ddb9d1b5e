"""Configuration errors."""

from barnabas.base.errors import ShownError


class ConfigError(ShownError, ValueError):
    """A key whose value cannot be used. Secrets never appear in the message."""

    is_wrong_usage = True

    def __init__(self, key: str, message: str) -> None:
        super().__init__(f"{key}: {message}")
        self.key = key
        self.message = message
