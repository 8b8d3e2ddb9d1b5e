"""Configuration errors."""


class ConfigError(ValueError):
    """A key whose value cannot be used. Secrets never appear in the message."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(f"{key}: {message}")
        self.key = key
        self.message = message
