"""Notices that a node cannot be of the cluster it asks, before it waits for that forever.

Two things tell: controllers that answer INCONSISTENT_CLUSTER_ID, and a quorum led by a node with
the id of this one, which is not a controller. One controller of another cluster may itself be the
stray, and the others decide. A majority of the voters that this node heard of is impossible: it is
this node whose directories belong elsewhere, or whose configuration names the wrong ones.
"""

import logging
from collections.abc import Iterable

from barnabas.base.errors import ShownError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FetchResponse

telemetry = logging.getLogger(__name__)


class ForeignClusterError(ShownError):
    """The configured controllers belong to another cluster."""


class DuplicateNodeIdError(ShownError):
    """Another node has the id of this one."""


class Membership:
    """This node's place in the cluster, according to other nodes' answers."""

    def __init__(
        self,
        cluster_id: str,
        node_id: int,
        is_controller: bool,
        controllers: Iterable[tuple[str, int]],
    ) -> None:
        """`controllers` are those that the configuration names, this node left out."""
        self._cluster_id = cluster_id
        self._node_id = node_id
        self._is_controller = is_controller
        self._controllers = dict.fromkeys(controllers)
        self._foreign: dict[tuple[str, int], None] = {}

    def contradiction(self, host: str, port: int, response: object) -> Exception | None:
        """Why this node must end, if the response from there says so."""
        if getattr(response, "error_code", 0) == ErrorCode.INCONSISTENT_CLUSTER_ID:
            return self._refused_by(host, port)
        if not self._is_controller and _leader_id(response) == self._node_id:
            return DuplicateNodeIdError(
                f"the leader of the quorum, as {host}:{port} names it, has node.id "
                f"{self._node_id} as this broker has: give this one another id and new directories"
            )
        return None

    def _refused_by(self, host: str, port: int) -> ForeignClusterError | None:
        if (host, port) in self._foreign:
            return None
        self._foreign[host, port] = None
        named = f"{host}:{port}"
        refusing = [end for end in self._controllers if end in self._foreign]
        if len(refusing) * 2 <= len(self._controllers):
            telemetry.warning(
                "%s belongs to another cluster than this node's directories (%s)",
                named,
                self._cluster_id,
            )
            return None
        return ForeignClusterError(
            f"{named} belongs to another cluster than this node's directories (cluster.id "
            f"{self._cluster_id}): format new directories with the id of that cluster, or name "
            "the right controllers in controller.quorum.bootstrap.servers"
        )


def _leader_id(response: object) -> int | None:
    """The leader that the answer to a fetch of the metadata log names, or None."""
    if isinstance(response, FetchResponse) and response.responses:
        partitions = response.responses[0].partitions
        if partitions:
            return partitions[0].current_leader.leader_id
    return None
