"""What goes wrong between the registry and its brokers, in words that say what to do."""

from typing import Final

from aiokafka import errors

TROUBLE: Final = (errors.KafkaError, OSError, TimeoutError)
"""What a request to a broker may raise; to be tried again, mostly."""
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
    errors.ProducerFenced: "another instance has taken over",
    errors.AuthenticationFailedError: "the brokers refuse the login: check kafkastore.sasl.*",
    errors.SaslAuthenticationFailed: "the brokers refuse the login: check kafkastore.sasl.*",
    errors.UnsupportedSaslMechanismError: (
        "the brokers do not know the mechanism: check kafkastore.sasl.mechanism"
    ),
}


class StoreError(Exception):
    """The topic cannot be used, now or ever. The message says why and what is needed."""


def words(error: BaseException) -> str:
    """One line on an error, with what is needed where that is known."""
    for kind, need in _NEEDS.items():
        if isinstance(error, kind):
            return need
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
