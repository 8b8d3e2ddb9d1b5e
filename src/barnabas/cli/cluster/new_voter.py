"""A controller that becomes a voter: who it is, and whether it is ready."""

import time
from dataclasses import dataclass, replace

from barnabas.base.config.values import parse_host_port
from barnabas.base.ids import Uuid, uuid_from_text, uuid_to_text
from barnabas.base.local_disk import LocalDisk
from barnabas.cli.admin import Admin, add_voter
from barnabas.cli.cluster.quorum_state import read_quorum, require_dynamic
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.node_options import load_node_config
from barnabas.node.metadata.meta_properties import read_meta_properties
from barnabas.node.metadata.metadata_log import local_voter
from barnabas.protocol.apis import ApiKey

RETRY_S = 0.5


@dataclass(frozen=True, slots=True)
class NewVoter:
    """What AddRaftVoter has to be told."""

    node_id: int
    directory_id: Uuid | None
    endpoints: tuple[tuple[str, str, int], ...]
    """(listener, host, port); a listener without a name is the cluster's first."""


def voter_from_config(path: str) -> NewVoter:
    """A voter from its server.properties and formatted directory. Raises CliError."""
    config = load_node_config(path, ())
    if "controller" not in config.process_roles:
        raise CliError(
            f"{path}: process.roles has no controller, so this node cannot vote", ExitCode.USAGE
        )
    directory = config.metadata_log_dir
    disk = LocalDisk()
    try:
        properties = read_meta_properties(disk, directory)
    finally:
        disk.close()
    if properties is None or properties.directory_id is None:
        raise CliError(
            f"{directory} is not formatted",
            hint="run barnabas storage format --no-initial-controllers first",
        )
    voter = local_voter(config, properties.directory_id)
    return NewVoter(
        config.node_id,
        properties.directory_id,
        tuple((end.listener, end.host, end.port) for end in voter.endpoints),
    )


def voter_from_text(text: str) -> NewVoter:
    """`id@host:port` or `id@host:port:directory`. Raises CliError."""
    wrong = CliError(f"{text}: write id@host:port or id@host:port:directory", ExitCode.USAGE)
    node_id, at, address = text.partition("@")
    if not at or not node_id.isdecimal():
        raise wrong
    directory_id = None
    host_port = parse_host_port(address)
    if host_port is None:
        address, _, directory = address.rpartition(":")
        host_port = parse_host_port(address)
        try:
            directory_id = uuid_from_text(directory)
        except ValueError as error:
            raise wrong from error
    if host_port is None:
        raise wrong
    return NewVoter(int(node_id), directory_id, (("", *host_port),))


def add(admin: Admin, voter: NewVoter) -> str:
    """Add it; returns the text of its directory id. Raises CliError."""
    require_dynamic(admin)
    quorum = read_quorum(admin)
    existing = quorum.voter(voter.node_id)
    if existing is not None and voter.directory_id in (None, existing.directory_id):
        raise CliError(f"node {voter.node_id} is a voter already")
    if existing is not None:
        raise CliError(
            f"node {voter.node_id} is a voter with another directory "
            f"({existing.directory_text}): its disk was replaced, or the id is used twice",
            hint=f"after the loss of a disk: barnabas quorum remove-voter {voter.node_id} first; "
            "otherwise give the new node another id",
        )
    observer = quorum.observer(voter.node_id, voter.directory_id)
    if observer is None:
        raise CliError(
            f"node {voter.node_id} does not follow the quorum",
            hint="start it first, formatted with --no-initial-controllers, and wait until "
            "barnabas quorum describe shows it",
        )
    if voter.directory_id not in (None, observer.directory_id):
        raise CliError(
            f"the node {voter.node_id} that follows the quorum has directory "
            f"{observer.directory_text}, not {uuid_to_text(voter.directory_id or Uuid(b''))}",
            hint="is the id used twice?",
        )
    names = [name for ends in quorum.endpoints.values() for name, _, _ in ends]
    listener = names[0] if names else "CONTROLLER"
    voter = replace(
        voter,
        endpoints=tuple((name or listener, host, port) for name, host, port in voter.endpoints),
    )
    _require_controller(admin, voter)
    _add_when_caught_up(admin, voter, observer.directory_id)
    return uuid_to_text(observer.directory_id)


def _require_controller(admin: Admin, voter: NewVoter) -> None:
    """Raise CliError for an address of a listener for clients: a broker there follows, and never
    votes. Addresses that are not reached from here are the leader's to judge.
    """
    for _, host, port in voter.endpoints:
        if admin.serves(host, port, ApiKey.VOTE) is False:
            raise CliError(
                f"{host}:{port} is not a controller's listener: the node there does not vote",
                hint="give the address of its listener in controller.listener.names; a node "
                "whose process.roles has no controller cannot vote",
            )


def _add_when_caught_up(admin: Admin, voter: NewVoter, directory_id: Uuid) -> None:
    """Ask again while the leader finds it too far behind, as long as commands wait for answers."""
    cluster_id = admin.info().cluster_id
    deadline = time.monotonic() + admin.timeout_s
    while True:
        try:
            add_voter(admin, cluster_id, voter.node_id, directory_id, voter.endpoints)
            return
        except CliError as error:
            votes = read_quorum(admin).voter(voter.node_id)
            if votes is not None and votes.directory_id == directory_id:
                return  # the leader changed before it could say so
            is_behind = error.code is ExitCode.UNREACHABLE
            if not is_behind or time.monotonic() > deadline:
                raise
        admin.pause(RETRY_S)
