"""BrokerRegistration (API 62, versions 0-4), BrokerHeartbeat (63, 0-2), UnregisterBroker (64, 0).

A broker registers and is fenced; once it has replayed its own registration it asks by heartbeat
to be unfenced, and from then on may join ISRs and lead. Going down it first asks for a
controlled shutdown, in which its leaderships move, and then for the end. Its epoch is the
offset of its registration, so that a later incarnation always has a higher one.
Source: KIP-631, KIP-841, KIP-858, KIP-966, KIP-1066; Kafka's ClusterControlManager.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain

from barnabas.base.ids import Uuid, uuid_to_text
from barnabas.node.metadata.controller.decision import ControllerState, Decision, Failure
from barnabas.node.metadata.controller.leadership import (
    has_leaderships,
    leader_and_isr_records,
    partitions_in_directory,
    partitions_with_elr_member,
    partitions_with_isr_member,
    partitions_without_leader,
)
from barnabas.node.metadata.ids import is_reserved
from barnabas.node.metadata.image import BrokerImage
from barnabas.node.metadata.merging import read_listeners, read_ranges
from barnabas.node.metadata.records import MetadataRecord
from barnabas.node.metadata.snapshot import register_broker_record
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.features import ELR_VERSION
from barnabas.protocol.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    UnregisterBrokerRecord,
)
from barnabas.protocol.messages.nodes import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)

FENCE, UNFENCE, UNCHANGED = 1, -1, 0


def check_broker_epoch(state: ControllerState, broker_id: int, epoch: int) -> Failure | None:
    """STALE_BROKER_EPOCH unless this incarnation of the broker is the registered one."""
    broker = state.image.brokers.get(broker_id)
    if broker is not None and broker.epoch == epoch:
        return None
    known = "is not registered" if broker is None else f"has epoch {broker.epoch}"
    return Failure(
        ErrorCode.STALE_BROKER_EPOCH, f"Broker {broker_id} {known}; the request names {epoch}."
    )


def register_broker(
    state: ControllerState, request: BrokerRegistrationRequest, *, has_session: bool = False
) -> Decision[BrokerRegistrationResponse]:
    """Register a broker, or a new incarnation of one, fenced.

    `has_session`: whether the registered incarnation was heard from within its session timeout.
    """
    failure = _check_registration(state, request, has_session)
    if failure is not None:
        return Decision(BrokerRegistrationResponse(error_code=failure.code))
    records: list[MetadataRecord] = []
    broker = BrokerImage(
        id=request.broker_id,
        # The first offset of the decision: batches are replayed whole, so a broker that has
        # replayed up to here has replayed its registration.
        epoch=state.next_offset,
        incarnation_id=request.incarnation_id,
        listeners=read_listeners(request.listeners),
        rack=request.rack,
        fenced=True,
        in_controlled_shutdown=False,
        log_dirs=tuple(request.log_dirs),
        features=read_ranges(request.features),
    )
    existing = state.image.brokers.get(request.broker_id)
    if existing is not None and existing.incarnation_id == request.incarnation_id:
        broker = replace(
            broker,
            epoch=existing.epoch,
            fenced=existing.fenced,
            in_controlled_shutdown=existing.in_controlled_shutdown,
            cordoned_log_dirs=existing.cordoned_log_dirs,
        )
    else:
        # One that was unregistered may yet be in an ISR or ELR, as the last that was.
        is_clean = existing is not None and existing.epoch == request.previous_broker_epoch
        records += _end_of_incarnation_records(state, request.broker_id, is_clean=is_clean)
    records.append(register_broker_record(broker, state.image.metadata_version))
    return Decision(BrokerRegistrationResponse(broker_epoch=broker.epoch), records)


def _check_registration(
    state: ControllerState, request: BrokerRegistrationRequest, has_session: bool
) -> Failure | None:
    image = state.image
    if request.cluster_id != image.cluster_id:
        return Failure(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {image.cluster_id}, but got cluster ID {request.cluster_id}",
        )
    existing = image.brokers.get(request.broker_id)
    if has_session and existing and existing.incarnation_id != request.incarnation_id:
        return Failure(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            "Another broker is registered with that broker id.",
        )
    if request.is_migrating_zk_broker:
        return Failure(
            ErrorCode.BROKER_ID_NOT_REGISTERED, "ZooKeeper brokers cannot be registered."
        )
    if image.metadata_version.has_directories:
        failure = _check_directories(image.brokers.values(), request)
        if failure is not None:
            return failure
    return _check_features(state, request)


def _check_directories(
    brokers: Iterable[BrokerImage], request: BrokerRegistrationRequest
) -> Failure | None:
    reason = None
    wanted = set(request.log_dirs)
    if not wanted:
        reason = "No directories specified in request"
    elif any(is_reserved(directory) for directory in wanted):
        reason = "Reserved directory ID in request"
    elif len(wanted) != len(request.log_dirs):
        reason = "Duplicate directory ID in request"
    else:
        for broker in brokers:
            shared = wanted.intersection(broker.log_dirs)
            if shared and broker.id != request.broker_id:
                directory = uuid_to_text(min(shared))
                reason = f"Broker {broker.id} is already registered with directory {directory}"
    return None if reason is None else Failure(ErrorCode.INVALID_REGISTRATION, reason)


def _check_features(state: ControllerState, request: BrokerRegistrationRequest) -> Failure | None:
    """Every finalized level must lie in what the broker can run."""
    ranges = read_ranges(request.features)
    for name, level in state.image.features.items():
        least, greatest = ranges.get(name, (0, 0))
        if not least <= level <= greatest:
            return Failure(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Unable to register because the broker does not support finalized version "
                f"{level} of {name}. The broker wants a version between {least} and {greatest}, "
                "inclusive.",
            )
    return None


def _end_of_incarnation_records(
    state: ControllerState, broker_id: int, *, is_clean: bool
) -> list[MetadataRecord]:
    """The changes to partitions that the last incarnation led or was in sync with.

    It is fenced, if it was not yet. After an unclean end, with eligible leader replicas, nothing
    that it was in sync with counts any more: an fsync may be missing (KIP-966).
    """
    if is_clean or state.image.features.get(ELR_VERSION, 0) < 1:
        in_sync = partitions_with_isr_member(state, broker_id)
        return leader_and_isr_records(state, in_sync, leaving=broker_id)
    return leader_and_isr_records(
        state,
        chain(
            partitions_with_isr_member(state, broker_id),
            partitions_with_elr_member(state, broker_id),
        ),
        unclean=broker_id,
    )


def broker_heartbeat(
    state: ControllerState, request: BrokerHeartbeatRequest
) -> Decision[BrokerHeartbeatResponse]:
    """Move the broker to the state that it may have, and say which that is."""
    failure = check_broker_epoch(state, request.broker_id, request.broker_epoch)
    if failure is not None:
        return Decision(BrokerHeartbeatResponse(error_code=failure.code))
    broker = state.image.brokers[request.broker_id]
    is_caught_up = request.current_metadata_offset >= broker.epoch
    response = BrokerHeartbeatResponse(is_caught_up=is_caught_up, is_fenced=broker.fenced)
    decision = Decision(response, is_atomic=False)
    if broker.in_controlled_shutdown and not broker.fenced:
        if not has_leaderships(state, broker.id):
            _shut_down(state, broker, decision)
    elif request.want_shut_down:
        if broker.fenced or request.want_fence or not has_leaderships(state, broker.id):
            _shut_down(state, broker, decision)
        else:
            decision.records += _controlled_shutdown_records(state, broker)
    elif broker.fenced and not request.want_fence and is_caught_up:
        # An incarnation that asked for its end does not come back.
        if not broker.in_controlled_shutdown:
            decision.records += _unfence_records(state, broker)
            response.is_fenced = False
    elif request.want_fence and not broker.fenced:
        decision.records += fence_records(state, broker)
        response.is_fenced = True
    decision.records += _directory_records(state, broker, request)
    return decision


def _shut_down(
    state: ControllerState, broker: BrokerImage, decision: Decision[BrokerHeartbeatResponse]
) -> None:
    decision.response.should_shut_down = True
    decision.response.is_fenced = True
    if not broker.fenced:
        decision.records += fence_records(state, broker)


def fence_records(
    state: ControllerState, broker: BrokerImage, *, before_its_time: bool = False
) -> list[MetadataRecord]:
    """Take the broker out of every ISR and leadership, and fence it.

    `before_its_time`: its session goes on, but its process is gone. Then the record is another,
    which Kafka knows too and never writes: brokers go on naming this one to clients.
    """
    return [
        *leader_and_isr_records(
            state, partitions_with_isr_member(state, broker.id), leaving=broker.id
        ),
        MetadataRecord(FenceBrokerRecord(id=broker.id, epoch=broker.epoch))
        if before_its_time
        else _change(broker, 0, fenced=FENCE),
    ]


def _unfence_records(state: ControllerState, broker: BrokerImage) -> list[MetadataRecord]:
    """Unfence the broker and let it lead what waits for a leader."""
    return [
        _change(broker, 0, fenced=UNFENCE),
        *leader_and_isr_records(state, partitions_without_leader(state), joining=broker.id),
    ]


def _controlled_shutdown_records(
    state: ControllerState, broker: BrokerImage
) -> list[MetadataRecord]:
    return [
        _change(broker, 1, in_controlled_shutdown=1),
        *leader_and_isr_records(
            state, partitions_with_isr_member(state, broker.id), leaving=broker.id
        ),
    ]


def _directory_records(
    state: ControllerState, broker: BrokerImage, request: BrokerHeartbeatRequest
) -> list[MetadataRecord]:
    """The changes of log directories in a heartbeat: newly offline ones, cordoned ones."""
    level = state.image.metadata_version
    records: list[MetadataRecord] = []
    offline = [directory for directory in broker.log_dirs if directory in request.offline_log_dirs]
    if level.has_directories and offline:
        located = (partitions_in_directory(state, broker.id, directory) for directory in offline)
        records += leader_and_isr_records(state, chain.from_iterable(located), leaving=broker.id)
        online = [directory for directory in broker.log_dirs if directory not in offline]
        records.append(_change(broker, 2, log_dirs=online))
    cordoned = request.cordoned_log_dirs
    if (
        level.has_cordoned_log_dirs
        and cordoned is not None
        and broker.cordoned_log_dirs != tuple(cordoned)
    ):
        records.append(_change(broker, 3, cordoned_log_dirs=list(cordoned)))
    return records


def unregister_broker(
    state: ControllerState, request: UnregisterBrokerRequest
) -> Decision[UnregisterBrokerResponse]:
    """Forget a broker that will not come back."""
    broker = state.image.brokers.get(request.broker_id)
    if broker is None:
        return Decision(
            UnregisterBrokerResponse(
                error_code=ErrorCode.BROKER_ID_NOT_REGISTERED,
                error_message=f"Broker ID {request.broker_id} is not currently registered",
            )
        )
    held = chain(
        partitions_with_isr_member(state, broker.id), partitions_with_elr_member(state, broker.id)
    )
    record = UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    return Decision(
        UnregisterBrokerResponse(error_message=None),
        [*leader_and_isr_records(state, held, leaving=broker.id), MetadataRecord(record)],
    )


def _change(
    broker: BrokerImage,
    version: int,
    *,
    fenced: int = UNCHANGED,
    in_controlled_shutdown: int = UNCHANGED,
    log_dirs: list[Uuid] | None = None,
    cordoned_log_dirs: list[Uuid] | None = None,
) -> MetadataRecord:
    record = BrokerRegistrationChangeRecord(
        broker_id=broker.id,
        broker_epoch=broker.epoch,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
        log_dirs=log_dirs or [],
        cordoned_log_dirs=cordoned_log_dirs,
    )
    return MetadataRecord(record, version)
