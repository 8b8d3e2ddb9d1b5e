"""Messages between the instances of a group: their identities, and the leader.

The JSON is Confluent's (SchemaRegistryIdentity and SchemaRegistryProtocol), so that its
instances and ours can be in one group.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PROTOCOL_TYPE = "sr"
PROTOCOL_NAME = "v0"
VERSION = 1
NO_ERROR = 0
DUPLICATE_URLS = 1
"""Two members have one URL, so that nobody could forward to either."""


class MembershipError(ValueError):
    """Another member's JSON is not what the protocol says."""


@dataclass(frozen=True, slots=True)
class Identity:
    """An instance, as others reach it."""

    host: str
    port: int
    scheme: str = "http"
    may_lead: bool = True
    leads: bool = False
    """True if it led before this election; counts where leaders are sticky."""

    @property
    def url(self) -> str:
        """The URL for requests of others, without a slash at the end."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def to_json(self) -> dict[str, Any]:
        """JSON with Confluent's fields."""
        return {
            "version": VERSION,
            "host": self.host,
            "port": self.port,
            "master_eligibility": self.may_lead,
            "scheme": self.scheme,
            "leader": self.leads,
        }

    @classmethod
    def from_json(cls, body: Any) -> "Identity":
        """Read decoded JSON; unknown fields are skipped. Raises MembershipError."""
        match body:
            case {"host": str(host), "port": int(port)}:
                scheme = body.get("scheme") or "http"
                may_lead = body.get("master_eligibility", True)
                return cls(host, port, str(scheme), bool(may_lead), bool(body.get("leader")))
        raise MembershipError(f"{body!r} is not the identity of an instance")

    def encode(self) -> bytes:
        """The metadata with which the instance joins."""
        return json.dumps(self.to_json(), separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes) -> "Identity":
        """Read a member's metadata. Raises MembershipError."""
        return cls.from_json(_loads(data))


@dataclass(frozen=True, slots=True)
class Assignment:
    """The result of an election, the same for all members."""

    leader_id: str | None
    """The leader's id in the group; None if nobody may lead."""
    leader: Identity | None
    error: int = NO_ERROR

    def encode(self) -> bytes:
        """The assignment as bytes."""
        body: dict[str, Any] = {"version": VERSION, "error": self.error}
        if self.leader is not None:
            body |= {"master": self.leader_id, "master_identity": self.leader.to_json()}
        return json.dumps(body, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes) -> "Assignment":
        """Read an assignment. Raises MembershipError."""
        body = _loads(data)
        if not isinstance(body, dict) or not isinstance(body.get("error", 0), int):
            raise MembershipError(f"{body!r} is not an assignment")
        leader = body.get("master_identity")
        return cls(
            body.get("master"),
            None if leader is None else Identity.from_json(leader),
            body.get("error", NO_ERROR),
        )


def elect(members: Mapping[str, Identity], *, sticky: bool = False) -> Assignment:
    """Choose the leader by Confluent's rule: the smallest URL of those that may lead.

    With `sticky` the one that leads goes on, if there is exactly one.
    """
    candidates = [
        (instance.url, member) for member, instance in members.items() if instance.may_lead
    ]
    urls = {instance.url for instance in members.values()}
    error = NO_ERROR if len(urls) == len(members) else DUPLICATE_URLS
    if not candidates:
        return Assignment(None, None, error)
    leading = [member for _, member in candidates if members[member].leads]
    chosen = leading[0] if sticky and len(leading) == 1 else min(candidates)[1]
    return Assignment(chosen, members[chosen], error)


def _loads(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MembershipError(f"{data[:100]!r} is not JSON: {error}") from error
