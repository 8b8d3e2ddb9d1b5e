"""The limit that applies to a client (KIP-55, KIP-546). Source: Kafka's ClientQuotaManager."""

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.node.metadata.image import QuotaEntity
from barnabas.node.metadata.quota_filter import CLIENT_ID, USER


class Limit(NamedTuple):
    """A limit, and who shares it: all clients with the same `user` and `client_id`."""

    per_second: float
    user: str
    """Empty if the limit applies to a client id of any user."""
    client_id: str
    """Empty where the limit holds for a user, with all client ids."""


def find_limit(quotas: Mapping[QuotaEntity, float], user: str, client_id: str) -> Limit | None:
    """The most specific of the limits of one key that fit the client; None: it has none.

    A client without an id has the limits of its user alone, as in Kafka.
    """
    if client_id:
        candidates: tuple[QuotaEntity, ...] = (
            ((CLIENT_ID, client_id), (USER, user)),
            ((CLIENT_ID, None), (USER, user)),
            ((USER, user),),
            ((CLIENT_ID, client_id), (USER, None)),
            ((CLIENT_ID, None), (USER, None)),
            ((USER, None),),
            ((CLIENT_ID, client_id),),
            ((CLIENT_ID, None),),
        )
    else:
        candidates = (((USER, user),), ((USER, None),))
    for entity in candidates:
        per_second = quotas.get(entity)
        if per_second is not None:
            kinds = {kind for kind, _ in entity}
            return Limit(
                per_second, user if USER in kinds else "", client_id if CLIENT_ID in kinds else ""
            )
    return None
