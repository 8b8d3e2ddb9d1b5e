"""Errors between the registry and its brokers, in words that say what to do."""

import asyncio
import logging
from typing import Final

from aiokafka import errors

from barnabas.kafka.membership import GroupRefusedError
from barnabas.protocol.errors import ErrorCode

TROUBLE: Final = (errors.KafkaError, OSError, TimeoutError)
"""Exceptions of a request to a broker; most of them justify another attempt."""
CLIENT_TROUBLE: Final = (*TROUBLE, AssertionError)
"""Including aiokafka's failed assertions."""
REFUSALS: Final = (
    errors.ClusterAuthorizationFailedError,
    errors.InvalidMessageError,
    errors.InvalidTopicError,
    errors.MessageSizeTooLargeError,
    errors.PolicyViolationError,
    errors.RecordListTooLargeError,
    errors.TopicAuthorizationFailedError,
    errors.TransactionalIdAuthorizationFailed,
)
"""Errors of writes that brokers would refuse again."""
_NEEDS: Final = {
    errors.TransactionalIdAuthorizationFailed: (
        "the brokers refuse the transactional id: allow Write and Describe on it"
    ),
    errors.ClusterAuthorizationFailedError: (
        "the brokers refuse it: allow Create on the topic or the cluster"
    ),
    errors.TopicAuthorizationFailedError: (
        "the brokers refuse the topic: allow Read, Write, Describe and DescribeConfigs on it, "
        "and Create if it is not there"
    ),
    errors.GroupAuthorizationFailedError: (
        "the brokers refuse the group: allow Read and Describe on it"
    ),
    errors.InvalidTransactionTimeout: (
        "the brokers refuse the time-out of transactions: let transaction.max.timeout.ms be at "
        "least 20000"
    ),
    errors.KafkaConnectionError: "no broker answers",
    errors.ProducerFenced: "another instance has taken over",
    errors.AuthenticationFailedError: "the brokers refuse the login: check kafkastore.sasl.*",
    errors.SaslAuthenticationFailed: "the brokers refuse the login: check kafkastore.sasl.*",
    errors.UnsupportedSaslMechanismError: (
        "the brokers do not know the mechanism: check kafkastore.sasl.mechanism"
    ),
}


telemetry = logging.getLogger(__name__)


class StoreError(Exception):
    """The topic cannot be used, now or ever. The message says why and what is needed."""


def watch(task: "asyncio.Task[None]", what: str, failure: "asyncio.Future[StoreError]") -> None:
    """Let an error of our own in a task that runs for ever be the store's failure, not silence."""

    def ended(task: "asyncio.Task[None]") -> None:
        if task.cancelled() or task.exception() is None:
            return
        error = task.exception()
        telemetry.error("%s has ended with an internal error", what, exc_info=error)
        if not failure.done():
            failure.set_result(StoreError(f"{what} has ended with an internal error: {error!r}"))

    task.add_done_callback(ended)


def words(error: BaseException) -> str:
    """One line on an error, with what is needed where that is known."""
    if isinstance(error, GroupRefusedError) and error.code != ErrorCode.NONE:
        error = errors.for_code(int(error.code))()
    for kind, need in _NEEDS.items():
        if isinstance(error, kind):
            return need
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
