"""New partitions: a given or a chosen assignment becomes the first image of each partition."""

from barnabas.node.metadata.controller.decision import ControllerState, Failure
from barnabas.node.metadata.controller.placement import default_directories, place_replicas
from barnabas.node.metadata.image import PartitionImage
from barnabas.protocol.errors import ErrorCode


def check_manual_assignment(
    replicas: list[int], state: ControllerState, expected_factor: int | None
) -> Failure | None:
    """Why `replicas` cannot be one partition's assignment, or None if they can."""
    reason = None
    if not replicas:
        reason = "includes an empty replica list."
    else:
        for index, broker_id in enumerate(sorted(replicas)):
            if broker_id not in state.image.brokers:
                reason = f"includes broker {broker_id}, but no such broker is registered."
                break
            if index and sorted(replicas)[index - 1] == broker_id:
                reason = f"includes the broker {broker_id} more than once."
                break
        else:
            if expected_factor is not None and len(replicas) != expected_factor:
                reason = (
                    f"includes a partition with {len(replicas)} replica(s), but this is not "
                    f"consistent with previous partitions, which have {expected_factor} replica(s)."
                )
    if reason is None:
        return None
    return Failure(
        ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment {reason}"
    )


def manual_partition(
    replicas: list[int], number: int, state: ControllerState
) -> PartitionImage | Failure:
    """The partition as a request assigned it; its active replicas are in sync from the start."""
    isr = _active(replicas, state)
    if not isr:
        return Failure(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"All brokers specified in the manual partition assignment for partition {number} "
            "are fenced or in controlled shutdown.",
        )
    return _new_partition(replicas, isr, state)


def placed_partitions(
    count: int, replication_factor: int, state: ControllerState
) -> list[PartitionImage] | Failure:
    """`count` partitions on brokers that the placement chooses."""
    placed = place_replicas(
        state.image.brokers.values(),
        partition_count=count,
        replication_factor=replication_factor,
        random=state.random,
    )
    if isinstance(placed, Failure):
        return Failure(
            placed.code,
            f"Unable to replicate the partition {replication_factor} time(s): {placed.message}",
        )
    return [_new_partition(replicas, _active(replicas, state), state) for replicas in placed]


def _active(replicas: list[int], state: ControllerState) -> list[int]:
    brokers = state.image.brokers
    return [replica for replica in replicas if brokers[replica].is_active]


def _new_partition(replicas: list[int], isr: list[int], state: ControllerState) -> PartitionImage:
    return PartitionImage(
        replicas=tuple(replicas),
        isr=tuple(isr),
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=default_directories(replicas, state.image.brokers)
        if state.image.metadata_version.has_directories
        else (),
    )
