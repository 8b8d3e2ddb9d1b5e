"""Errors of the registry's REST interface, by Confluent's numeric codes."""


class RegistryError(Exception):
    """An answer that refuses: the HTTP status, Confluent's code and one sentence."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def status(self) -> int:
        """The HTTP status: the first three digits of the code."""
        return self.code if self.code < 1000 else self.code // 100
