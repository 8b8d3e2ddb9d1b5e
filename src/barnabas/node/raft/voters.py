"""Voter sets of the metadata quorum: static ones from configuration, dynamic ones from records.

A static quorum (kraft.version 0) knows its voters by id from `controller.quorum.voters`; a
dynamic one (kraft.version 1, KIP-853) keeps them in VotersRecords, each with the id of its
metadata directory, so that a node whose disk was replaced is not taken for the old one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.base.errors import ShownError
from barnabas.base.ids import ZERO_UUID, Uuid, uuid_from_text
from barnabas.protocol.messages import quorum
from barnabas.protocol.messages.voters import KRaftVersionFeature

KRAFT_VERSION_MAX = 1


class VotersError(ShownError, ValueError):
    """A list of voters that cannot be read or makes no quorum."""


class ReplicaKey(NamedTuple):
    """A replica of the metadata log; the directory is ZERO_UUID where it is not known."""

    id: int
    directory_id: Uuid


class VoterEndpoint(NamedTuple):
    """The address of a voter's controller listener."""

    listener: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Voter:
    """One voter, where it answers and which kraft.version it can run."""

    key: ReplicaKey
    endpoints: tuple[VoterEndpoint, ...]
    kraft_version_min: int = 0
    kraft_version_max: int = KRAFT_VERSION_MAX


@dataclass(frozen=True, slots=True)
class VoterSet:
    """The voters of one moment, by id."""

    by_id: Mapping[int, Voter]

    @property
    def majority(self) -> int:
        """The number of voters in a majority."""
        return len(self.by_id) // 2 + 1

    def is_voter(self, replica: ReplicaKey) -> bool:
        """Return whether `replica` votes; a voter without a known directory matches by id alone."""
        voter = self.by_id.get(replica.id)
        return voter is not None and voter.key.directory_id in (ZERO_UUID, replica.directory_id)

    def with_voter(self, voter: Voter) -> "VoterSet":
        """The same set with `voter` in the place of its namesake."""
        return VoterSet({**self.by_id, voter.key.id: voter})

    def without_voter(self, voter_id: int) -> "VoterSet":
        """The same set without `voter_id`."""
        return VoterSet({key: voter for key, voter in self.by_id.items() if key != voter_id})

    def to_record(self) -> quorum.VotersRecord:
        """The control record that a dynamic quorum stores."""
        return quorum.VotersRecord(
            version=0,
            voters=[
                quorum.VotersRecordVoter(
                    voter_id=voter.key.id,
                    voter_directory_id=voter.key.directory_id,
                    endpoints=[
                        quorum.Endpoint(name=end.listener, host=end.host, port=end.port)
                        for end in voter.endpoints
                    ],
                    k_raft_version_feature=KRaftVersionFeature(
                        min_supported_version=voter.kraft_version_min,
                        max_supported_version=voter.kraft_version_max,
                    ),
                )
                for _, voter in sorted(self.by_id.items())
            ],
        )


def voter_set_from_record(record: quorum.VotersRecord) -> VoterSet:
    """The voter set that a VotersRecord of the log or of a snapshot holds."""
    return VoterSet(
        {
            voter.voter_id: Voter(
                key=ReplicaKey(voter.voter_id, voter.voter_directory_id),
                endpoints=tuple(
                    VoterEndpoint(end.name, end.host, end.port) for end in voter.endpoints
                ),
                kraft_version_min=voter.k_raft_version_feature.min_supported_version,
                kraft_version_max=voter.k_raft_version_feature.max_supported_version,
            )
            for voter in record.voters
        }
    )


def parse_static_voters(entries: list[str], listener: str) -> VoterSet:
    """Read `controller.quorum.voters`: entries of the form `id@host:port`.

    Raises VotersError.
    """
    voters: dict[int, Voter] = {}
    for entry in entries:
        node_id, host, rest = _split_entry(entry, "id@host:port")
        _add(
            voters,
            Voter(ReplicaKey(node_id, ZERO_UUID), (_endpoint(entry, listener, host, rest),)),
        )
    return VoterSet(voters)


def parse_dynamic_voters(text: str, listener: str) -> VoterSet:
    """Read `--initial-controllers`: `id@host:port:directory` separated by commas.

    Raises VotersError. Source: KIP-853, Kafka's DynamicVoters.
    """
    voters: dict[int, Voter] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        node_id, host, rest = _split_entry(entry, "id@host:port:directory")
        port, colon, directory = rest.partition(":")
        if not colon:
            raise VotersError(f"{entry!r} has no directory id; write id@host:port:directory")
        try:
            directory_id = uuid_from_text(directory)
        except ValueError as error:
            raise VotersError(f"{entry!r}: {error}") from error
        _add(
            voters,
            Voter(ReplicaKey(node_id, directory_id), (_endpoint(entry, listener, host, port),)),
        )
    if not voters:
        raise VotersError("no initial controllers were given")
    return VoterSet(voters)


def _split_entry(entry: str, form: str) -> tuple[int, str, str]:
    """Cut into (node id, host, what follows the colon after the host)."""
    id_text, at, address = entry.strip().partition("@")
    if not at or not id_text.isdecimal():
        raise VotersError(f"{entry!r} is not of the form {form}")
    if address.startswith("["):
        host, bracket, rest = address[1:].partition("]")
        if not bracket or not rest.startswith(":"):
            raise VotersError(f"{entry!r} is not of the form {form}")
        return int(id_text), host, rest[1:]
    host, colon, rest = address.partition(":")
    if not colon or not host:
        raise VotersError(f"{entry!r} is not of the form {form}")
    return int(id_text), host, rest


def _endpoint(entry: str, listener: str, host: str, port_text: str) -> VoterEndpoint:
    if not port_text.isdecimal() or int(port_text) > 65535:
        raise VotersError(f"{entry!r}: {port_text!r} is not a port")
    return VoterEndpoint(listener, host, int(port_text))


def _add(voters: dict[int, Voter], voter: Voter) -> None:
    if voter.key.id in voters:
        raise VotersError(f"voter {voter.key.id} is listed twice")
    voters[voter.key.id] = voter
