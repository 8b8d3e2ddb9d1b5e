"""Could correct share groups have given these records out like that?

Leaders of former epochs may go on for a while with what they know; nothing that they do counts
against what happened in later epochs. Source of the rules: KIP-932.
"""

from bisect import bisect_right
from collections.abc import Callable

from barnabas.base.ids import TopicPartition
from barnabas.node.share.core.states import AcknowledgeType
from sim.share_history import Hold, ShareDelivery, ShareHistory
from sim.sim_history import Anomaly, Outcome

Record = tuple[str, TopicPartition, int]
"""A group, a partition and an offset."""
LOCK_SLACK_S = 0.002
"""Clocks of nodes count whole milliseconds."""
FINAL = {AcknowledgeType.ACCEPT, AcknowledgeType.REJECT}


class View:
    """The history by record."""

    def __init__(self, history: ShareHistory) -> None:
        self.lock_s = history.lock_duration_ms / 1000 - LOCK_SLACK_S
        self.delivery_count_max = history.delivery_count_max
        self.deliveries: dict[Record, list[ShareDelivery]] = {}
        """In the order of time."""
        for delivery in history.deliveries:
            for offset in range(delivery.first, delivery.last + 1):
                record = (delivery.group, delivery.topic_partition, offset)
                self.deliveries.setdefault(record, []).append(delivery)
        self.holds: dict[Record, list[tuple[Hold, ShareDelivery]]] = {}
        """With the delivery that each is of."""
        self.strays: list[Hold] = []
        for hold in history.holds:
            record = (hold.group, hold.topic_partition, hold.offset)
            found = self._delivery_of(hold, self.deliveries.get(record, []))
            if found is None:
                self.strays.append(hold)
            else:
                self.holds.setdefault(record, []).append((hold, found))

    def _delivery_of(self, hold: Hold, made: list[ShareDelivery]) -> ShareDelivery | None:
        before = made[: bisect_right(made, hold.received_s, key=lambda each: each.at_s)]
        for delivery in reversed(before):
            if (delivery.member, delivery.node) == (hold.member, hold.session.node):
                return delivery
        return None

    def locks(self, record: Record, hold: Hold, delivery: ShareDelivery, at_s: float) -> bool:
        """Return whether the leader must have taken the record for the member's at `at_s`."""
        if hold.session.confirmed_s <= at_s or self.is_spoken_of(record, hold, delivery, at_s):
            return False
        if at_s < delivery.at_s + self.lock_s:
            return True
        return any(
            answered_s <= at_s < sent_s + self.lock_s for sent_s, answered_s in hold.renewals
        )

    def is_spoken_of(
        self, record: Record, hold: Hold, delivery: ShareDelivery, by_s: float
    ) -> bool:
        """Return whether the member may itself have ended the hold by `by_s`.

        An acknowledgement names a member and offsets, not the delivery that it is about (KIP-932).
        So a late acknowledgement of a record that the member has got again (its lock had run out,
        or there was another leader for a while) ends the new hold, in Kafka too. Only one that was
        answered before this delivery, or refused, cannot have ended it.
        """
        return hold.said_s <= by_s or any(
            other.member == hold.member
            and other.session.node == hold.session.node
            and other.said_s <= by_s
            and other.outcome is not Outcome.FAILED
            and (other.outcome is not Outcome.OK or other.answered_s > delivery.at_s)
            for other, _ in self.holds[record]
            if other is not hold
        )

    def may_be_spent(self, hold: Hold, delivery: ShareDelivery) -> bool:
        """Return whether the leader may have given the record up before the acknowledgement came.

        When the lock of the last delivery runs out, the record is archived at once, and the start
        of the group may pass it before that is written. Acknowledgements of records before the
        start are answered without an error, and not written; if the leader dies first, the next
        one does not know of them. Kafka does the same (SharePartition's acknowledge, and its
        handling of a lock that times out): only written state survives.
        """
        begun_s = [delivery.at_s, *(sent_s for sent_s, _ in hold.renewals)]
        return (
            hold.delivery_count >= self.delivery_count_max
            and hold.answered_s >= max(begun_s) + self.lock_s
        )

    def is_over(self, record: Record, but: Hold, by_s: float) -> bool:
        """Return whether another hold may have ended the record by `by_s`, or its last delivery."""
        return any(
            hold is not but
            and hold.kind in FINAL
            and hold.said_s < by_s
            and hold.outcome is not Outcome.FAILED
            for hold, _ in self.holds.get(record, ())
        ) or any(
            delivery.delivery_count >= self.delivery_count_max and delivery.at_s < by_s
            for delivery in self.deliveries[record]
        )


def two_holders(view: View) -> list[Anomaly]:
    """A record that was given out while somebody held it.

    Its leader knew: it is the one that had given it, its lock had not run out, the member had
    said nothing of the record since, and its session was alive, as it was served in it later.
    """
    found = []
    for record, holds in view.holds.items():
        for hold, delivery in holds:
            found += [
                _anomaly(
                    "two-holders",
                    record,
                    f"{hold.member} had it since {delivery.at_s:.3f} s when "
                    f"{later.member} got it at {later.at_s:.3f} s",
                )
                for later in view.deliveries[record]
                if later.hosted == delivery.hosted
                and later.at_s > delivery.at_s
                and view.locks(record, hold, delivery, later.at_s)
            ]
    return found


def former_holders(view: View) -> list[Anomaly]:
    """An acknowledgement that was taken of somebody who had the record no more.

    Of records before the group's start anything may be said, as in Kafka.
    """
    found = []
    for record, holds in view.holds.items():
        for hold, delivery in holds:
            if hold.outcome is not Outcome.OK:
                continue
            between = [
                later
                for later in view.deliveries[record]
                if delivery.at_s < later.at_s < hold.said_s
                and later.leader_epoch >= delivery.leader_epoch
            ]
            if (
                between
                and all(later.member != hold.member for later in between)
                and not view.is_over(record, hold, hold.answered_s)
            ):
                found.append(
                    _anomaly(
                        "former-holder",
                        record,
                        f"{hold.member} had it since {delivery.at_s:.3f} s, "
                        f"{between[-1].member} since {between[-1].at_s:.3f} s; at "
                        f"{hold.said_s:.3f} s the first was believed",
                    )
                )
    return found


def given_again(view: View) -> list[Anomaly]:
    """A record that was given out, or accepted, again when its end was acknowledged."""
    found = []
    for record, holds in view.holds.items():
        ends = [
            (hold, delivery)
            for hold, delivery in holds
            if hold.outcome is Outcome.OK
            and hold.kind in FINAL
            and not view.may_be_spent(hold, delivery)
        ]
        for hold, delivery in ends:
            what = f"{hold.member}'s {_name(hold.kind)} was answered at {hold.answered_s:.3f} s"
            again = [
                later
                for later in view.deliveries[record]
                if later.at_s > hold.answered_s and later.leader_epoch >= delivery.leader_epoch
            ]
            if again:
                found.append(
                    _anomaly(
                        "given-again",
                        record,
                        f"{what}; {again[0].member} got it at {again[0].at_s:.3f} s",
                    )
                )
            for other, later in ends:
                if hold.said_s <= later.at_s <= hold.answered_s:
                    found.append(
                        _anomaly(
                            "ended-twice",
                            record,
                            f"{what}; {other.member}'s, which got it at {later.at_s:.3f} s, at "
                            f"{other.answered_s:.3f} s",
                        )
                    )
    return found


def delivery_counts(view: View) -> list[Anomaly]:
    """A count above the limit, or that does not ascend."""
    found = []
    for record, made in view.deliveries.items():
        counts: dict[int, int] = {}
        for delivery in made:
            count = delivery.delivery_count
            if count > view.delivery_count_max:
                found.append(_anomaly("given-too-often", record, f"delivery {count}"))
            if count <= counts.get(delivery.hosted, 0):
                found.append(
                    _anomaly(
                        "count-stays",
                        record,
                        f"delivery {count} at {delivery.at_s:.3f} s after "
                        f"{counts[delivery.hosted]}",
                    )
                )
            counts[delivery.hosted] = count
    return found


def lost_counts(view: View) -> list[Anomaly]:
    """A record that was given back, which was acknowledged, and whose count forgets that."""
    found = []
    for record, holds in view.holds.items():
        for hold, delivery in holds:
            if hold.outcome is not Outcome.OK or hold.kind != AcknowledgeType.RELEASE:
                continue
            if view.may_be_spent(hold, delivery):
                continue
            for later in view.deliveries[record]:
                if (
                    later.at_s > hold.answered_s
                    and later.leader_epoch >= delivery.leader_epoch
                    and later.delivery_count <= hold.delivery_count
                ):
                    found.append(
                        _anomaly(
                            "lost-count",
                            record,
                            f"delivery {hold.delivery_count} ended at {hold.answered_s:.3f} s, "
                            f"delivery {later.delivery_count} was made at {later.at_s:.3f} s",
                        )
                    )
                    break
    return found


def unknown_deliveries(view: View) -> list[Anomaly]:
    """A member was told that it has what no leader gave it."""
    return [
        _anomaly(
            "nobody's-record",
            (hold.group, hold.topic_partition, hold.offset),
            f"{hold.member} got it at {hold.received_s:.3f} s",
        )
        for hold in view.strays
    ]


CHECKERS: dict[str, Callable[[View], list[Anomaly]]] = {
    "two-holders": two_holders,
    "former-holder": former_holders,
    "given-again": given_again,
    "count": delivery_counts,
    "lost-count": lost_counts,
    "nobody's-record": unknown_deliveries,
}
NEEDS_DURABILITY = {"former-holder", "given-again", "lost-count"}


def check_shares(
    history: ShareHistory,
    final: dict[TopicPartition, dict[int, str]],
    groups: list[str],
    *,
    is_durable: bool,
) -> list[Anomaly]:
    """Everything that is wrong; `final` is what the log holds in the end."""
    view = View(history)
    found: list[Anomaly] = []
    for name, checker in CHECKERS.items():
        if is_durable or name not in NEEDS_DURABILITY:
            found += checker(view)
    if is_durable:
        found += starts_go_back(history)
        if history.is_drained:
            found += lost_records(view, final, groups)
    return found


def starts_go_back(history: ShareHistory) -> list[Anomaly]:
    """A start offset behind one that was told before anybody asked for it."""
    found = []
    highest: dict[tuple[str, TopicPartition], list[tuple[float, int]]] = {}
    for seen in sorted(history.starts, key=lambda each: each.completed_s):
        known = highest.setdefault((seen.group, seen.topic_partition), [])
        before = max((start for at_s, start in known if at_s < seen.invoked_s), default=-1)
        if seen.start_offset < before:
            found.append(
                Anomaly(
                    "start-went-back",
                    f"{seen.topic_partition} in group {seen.group}: {seen.start_offset} at "
                    f"{seen.completed_s:.3f} s after {before}",
                )
            )
        known.append((seen.completed_s, seen.start_offset))
    return found


def lost_records(
    view: View, final: dict[TopicPartition, dict[int, str]], groups: list[str]
) -> list[Anomaly]:
    """A group is through with a record that nobody ended, and that was not given too often."""
    found = []
    for group in groups:
        for partition, values in final.items():
            for offset in values:
                record = (group, partition, offset)
                is_ended = any(
                    hold.kind in FINAL and hold.outcome is not Outcome.FAILED
                    for hold, _ in view.holds.get(record, ())
                )
                is_spent = any(
                    delivery.delivery_count >= view.delivery_count_max
                    for delivery in view.deliveries.get(record, ())
                )
                if not is_ended and not is_spent:
                    count = len(view.deliveries.get(record, ()))
                    found.append(_anomaly("passed-over", record, f"it was given out {count} times"))
    return found


def _anomaly(name: str, record: Record, text: str) -> Anomaly:
    group, partition, offset = record
    return Anomaly(name, f"{partition} offset {offset} in group {group}: {text}")


def _name(kind: int) -> str:
    return AcknowledgeType(kind).name.lower()
