"""Objects that are written once: who comes second learns what the first one's claim is.

The claim is the object's own metadata. It is looked at before an object is made visible, and a
condition (`If-None-Match: *`) sees to it that there is none since. Where a server knows no
conditions or does not let the connector look, objects are put in place of others, as without
claims; that is logged once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from barnabas.connect.connectors.s3.answers import (
    ChangedError,
    DeniedError,
    NotFoundError,
    NotSupportedError,
)
from barnabas.connect.connectors.storage.claims import Claim, TakenError
from barnabas.schemas.data.errors import RetriableError

if TYPE_CHECKING:
    from barnabas.connect.connectors.s3.bucket import Bucket, BucketPlace

CLAIM: Final = "barnabas-claim"
_log = logging.getLogger(__name__)
_unconditional: Final[set[BucketPlace]] = set()
"""Buckets of this process that know no conditions."""


def metadata(claim: Claim | None) -> dict[str, Any]:
    """Return the parameters with which an object is begun."""
    return {} if claim is None else {"Metadata": {CLAIM: claim.text()}}


def make_visible(bucket: Bucket, name: str, claim: Claim | None, call: Callable[..., Any]) -> None:
    """Make an object visible, unless there is one with such a claim.

    Raises TakenError; RetriableError, also where another came in between; ConnectError.
    """
    what, place = f"write {name} to", bucket.place
    if claim is None:
        bucket.ask(what, call)
        return
    condition = _condition(bucket, name, claim)
    try:
        bucket.ask(what, lambda: call(**condition))
    except ChangedError as error:
        raise RetriableError(str(error)) from None
    except NotSupportedError as error:
        if not condition:
            raise
        _warn(place, str(error))
        bucket.ask(what, call)


def _condition(bucket: Bucket, name: str, claim: Claim) -> Mapping[str, str]:
    place = bucket.place
    try:
        head = bucket.ask(
            f"look at {name} of",
            lambda: bucket.client.head_object(Bucket=place.bucket, Key=name, **place.put_part),
        )
    except NotFoundError:
        return {} if place in _unconditional else {"IfNoneMatch": "*"}
    except DeniedError as error:
        _warn(place, str(error))
        return {}
    theirs = Claim.read(head.get("Metadata", {}).get(CLAIM, ""))
    if theirs is not None and theirs.rules == claim.rules:
        raise TakenError(name, theirs)
    return {}


def _warn(place: BucketPlace, reason: str) -> None:
    if place not in _unconditional:
        _unconditional.add(place)
        _log.warning(
            "%s: a task that is cut off from its group may write over longer objects", reason
        )
