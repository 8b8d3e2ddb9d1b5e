"""Why a request about connectors cannot be done; the REST interface answers with `status`.

Texts and codes are those of Kafka's ConnectExceptionMapper (Kafka 4.3).
"""

from __future__ import annotations

from barnabas.schemas.data.errors import ConnectError


class RequestError(ConnectError):
    """A request cannot be done (ConnectRestException)."""

    java_name = "org.apache.kafka.connect.runtime.rest.errors.ConnectRestException"
    status = 500

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        if status is not None:
            self.status = status


class BadRequestError(RequestError):
    """A request that can never succeed (BadRequestException)."""

    java_name = "org.apache.kafka.connect.runtime.rest.errors.BadRequestException"
    status = 400


class NotFoundError(RequestError):
    """There is no such connector, task or plugin (NotFoundException)."""

    java_name = "org.apache.kafka.connect.errors.NotFoundException"
    status = 404


class AlreadyExistsError(RequestError):
    """A connector of that name is there (AlreadyExistsException)."""

    java_name = "org.apache.kafka.connect.errors.AlreadyExistsException"
    status = 409


class RebalanceNeededError(RequestError):
    """The worker does not know enough yet (RebalanceNeededException)."""

    java_name = "org.apache.kafka.connect.runtime.distributed.RebalanceNeededException"
    status = 409

    def __init__(self) -> None:
        super().__init__(
            "Cannot complete request momentarily due to stale configuration (typically caused by a "
            "concurrent config change)"
        )


class ShuttingDownError(RequestError):
    """The worker ends. Kafka answers 500, which does not say that another try may help."""

    status = 503

    def __init__(self) -> None:
        super().__init__("Worker is shutting down")


class ElsewhereError(ConnectError):
    """Another worker has to do it, the leader or the owner (RequestTargetException).

    `url` is its advertised one; None where it is not known now.
    """

    java_name = "org.apache.kafka.connect.runtime.distributed.RequestTargetException"

    def __init__(self, text: str, url: str | None) -> None:
        super().__init__(text)
        self.url = url
