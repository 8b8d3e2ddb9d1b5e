"""`__cluster_metadata-0` on disk, and who this node is in its quorum."""

from barnabas.base.config.listeners import SECURITY_PROTOCOLS
from barnabas.base.config.node import NodeConfig
from barnabas.base.ids import Uuid
from barnabas.metadata.image import Endpoint
from barnabas.raft.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet, parse_static_voters

PROTOCOL_NUMBERS = {name: number for number, name in enumerate(SECURITY_PROTOCOLS)}


def controller_endpoints(config: NodeConfig) -> dict[str, Endpoint]:
    """Where this node's controller answers, by listener name."""
    return {
        listener.name: Endpoint(
            reachable_host(listener.host),
            max(listener.port, 0),
            PROTOCOL_NUMBERS[listener.security_protocol],
        )
        for listener in config.advertised_controller_listeners
    }


def reachable_host(host: str) -> str:
    """What to tell others for a listener bound to every interface: this machine itself."""
    return host if host not in ("", "0.0.0.0", "::") else "localhost"


def local_voter(config: NodeConfig, directory_id: Uuid) -> Voter:
    """This node as a voter."""
    return Voter(
        ReplicaKey(config.node_id, directory_id),
        tuple(
            VoterEndpoint(name, end.host, end.port)
            for name, end in controller_endpoints(config).items()
        ),
    )


def static_voters(config: NodeConfig) -> VoterSet | None:
    """The voters of `controller.quorum.voters`, or None where it is not set."""
    entries = config.list("controller.quorum.voters")
    if not entries:
        return None
    return parse_static_voters(entries, config.controller_listener_names[0])
