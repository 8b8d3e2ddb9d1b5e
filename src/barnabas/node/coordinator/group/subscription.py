"""Topics that classic members subscribe to, read from the protocol embedded in JoinGroup."""

from collections.abc import Iterable

from barnabas.protocol.codec import decode_at
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages.groups import ConsumerProtocolSubscription

CONSUMER_PROTOCOL_TYPE = "consumer"


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The topics in the subscriptions of consumers; None where one of them cannot be read.

    Read as version 0, which every version begins with, so that newer clients are understood.
    """
    topics: set[str] = set()
    try:
        for data in subscriptions:
            if len(data) < 2 or data[0] & 0x80:
                return None
            subscription, _ = decode_at(ConsumerProtocolSubscription, 0, data, 2)
            topics.update(subscription.topics)
    except DecodeError:
        return None
    return frozenset(topics)
