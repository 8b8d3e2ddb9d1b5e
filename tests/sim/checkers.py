"""Is this history one that a correct log could have given?

The anomalies have the names of Jepsen's Kafka analyses. Every checker takes the whole history
and returns what it found; none stops at the first.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from barnabas.base.ids import TopicPartition
from sim.group_checkers import former_commits, group_skips, lost_commits, two_owners
from sim.sim_history import Anomaly, History, Outcome, Poll, Send


@dataclass(slots=True)
class PartitionView:
    """One partition as all clients together saw it."""

    values_at: dict[int, dict[str, str]] = field(default_factory=dict)
    """Offset → value → who says so first."""
    offsets_of: dict[str, list[int]] = field(default_factory=dict)
    """Value → the offsets at which it was polled, ascending by first sight."""
    polled_max: int = -1
    final: dict[int, str] = field(default_factory=dict)
    """The records of the final read."""
    sends: list[Send] = field(default_factory=list)
    polls: dict[tuple[str, int], list[Poll]] = field(default_factory=dict)
    """By consumer and run of positions."""

    def saw(self, offset: int, value: str, who: str) -> None:
        self.values_at.setdefault(offset, {}).setdefault(value, who)


Views = dict[TopicPartition, PartitionView]
Checker = Callable[[History, Views], list[Anomaly]]


def check(history: History) -> list[Anomaly]:
    """Everything that is wrong with a history."""
    views = view(history)
    found = list(history.observed)
    for checker in CHECKERS.values():
        found += checker(history, views)
    return found


def view(history: History) -> Views:
    """The history by partition."""
    views: Views = {}
    for send in history.sends:
        of = views.setdefault(send.topic_partition, PartitionView())
        of.sends.append(send)
        if send.outcome is Outcome.OK and send.base_offset >= 0:
            for index, value in enumerate(send.values):
                of.saw(send.base_offset + index, value, f"the answer to {send.producer}")
    for poll in history.polls:
        of = views.setdefault(poll.topic_partition, PartitionView())
        of.polls.setdefault((poll.consumer, poll.run), []).append(poll)
        for offset, value in poll.records:
            of.saw(offset, value, poll.consumer)
            offsets = of.offsets_of.setdefault(value, [])
            if offset not in offsets:
                offsets.append(offset)
            of.polled_max = max(of.polled_max, offset)
            if poll.is_final:
                of.final[offset] = value
    return views


def lost_writes(history: History, views: Views) -> list[Anomaly]:
    """Acknowledged, and not where a reader who came past it, or the final one, should find it."""
    found = []
    for topic_partition, of in views.items():
        end = history.final_ends.get(topic_partition)
        kept = set(of.final.values())
        for send in of.sends:
            if send.outcome is not Outcome.OK or not send.is_durable:
                continue
            for index, value in enumerate(send.values):
                offset = send.base_offset + index if send.base_offset >= 0 else -1
                if end is not None:
                    is_lost = value not in kept
                else:
                    is_lost = value not in of.offsets_of and 0 <= offset < of.polled_max
                if is_lost:
                    found.append(
                        Anomaly(
                            "lost-write",
                            f"{topic_partition}: {value} was acknowledged at offset {offset} to "
                            f"{send.producer} at {send.completed_s:.3f} s and is not in the log",
                        )
                    )
    return found


def unseen(history: History, views: Views) -> list[Anomaly]:
    """Acknowledged, never read by anybody, although the partition could be read to its end."""
    found = []
    for topic_partition, of in views.items():
        if topic_partition not in history.final_ends:
            continue
        for send in of.sends:
            if send.outcome is Outcome.OK and send.is_durable:
                missing = [value for value in send.values if value not in of.offsets_of]
                if missing and send.base_offset > of.polled_max:
                    found.append(Anomaly("unseen", f"{topic_partition}: nobody read {missing}"))
    return found


def inconsistent_offsets(history: History, views: Views) -> list[Anomaly]:
    """Find offsets with two values in answers and polls.

    A value that was not durably acknowledged may be overwritten.
    """
    found = []
    for topic_partition, of in views.items():
        excused = {
            value
            for send in of.sends
            if not send.is_durable and send.outcome is Outcome.OK
            for value in send.values
        }
        for offset, values in of.values_at.items():
            if len(values) > 1 and len(set(values) - excused) > 1:
                told = ", ".join(f"{value} ({who})" for value, who in values.items())
                found.append(
                    Anomaly("inconsistent-offsets", f"{topic_partition} offset {offset}: {told}")
                )
    return found


def duplicates(history: History, views: Views) -> list[Anomaly]:
    """One value at two offsets, though its producer was idempotent or sent it once."""
    found = []
    for topic_partition, of in views.items():
        for send in of.sends:
            if not send.is_idempotent and send.attempts > 1:
                continue
            for value in send.values:
                offsets = sorted(of.offsets_of.get(value, ()))
                if not send.is_durable:  # what was lost may be sent again, and lie elsewhere
                    offsets = [offset for offset in offsets if of.final.get(offset) == value]
                if len(offsets) > 1:
                    found.append(
                        Anomaly("duplicate", f"{topic_partition}: {value} at offsets {offsets}")
                    )
    return found


def poll_skips(history: History, views: Views) -> list[Anomaly]:
    """A consumer that went on behind offsets that hold records, without reading them."""
    found = []
    for topic_partition, of in views.items():
        for (consumer, _), polls in of.polls.items():
            expected: int | None = None
            for poll in polls:
                for offset, _ in poll.records:
                    if expected is not None and offset > expected:
                        missed = [at for at in range(expected, offset) if at in of.values_at]
                        if missed:
                            found.append(
                                Anomaly(
                                    "poll-skip",
                                    f"{topic_partition}: {consumer} went from {expected - 1} to "
                                    f"{offset} at {poll.polled_s:.3f} s and missed {missed[:5]}",
                                )
                            )
                    expected = offset + 1
    return found


def nonmonotonic_polls(history: History, views: Views) -> list[Anomaly]:
    """A consumer that was given an offset again, or an earlier one, without asking for it."""
    found = []
    for topic_partition, of in views.items():
        for (consumer, _), polls in of.polls.items():
            last = -1
            for poll in polls:
                for offset, _ in poll.records:
                    if offset <= last:
                        found.append(
                            Anomaly(
                                "nonmonotonic-poll",
                                f"{topic_partition}: {consumer} got {offset} after {last} "
                                f"at {poll.polled_s:.3f} s",
                            )
                        )
                    last = offset
    return found


def nonmonotonic_sends(history: History, views: Views) -> list[Anomaly]:
    """Find records that are in the log in another order than their producer sent them."""
    found = []
    for topic_partition, of in views.items():
        last: dict[str, tuple[int, int]] = {}
        at_of = {value: offset for offset, value in of.final.items()}
        for send in of.sends:
            offset = send.base_offset if send.outcome is Outcome.OK else -1
            if offset < 0 and send.is_idempotent:
                offset = at_of.get(send.values[0], -1)
            if offset < 0 or not send.is_durable:
                continue
            before = last.get(send.producer)
            if before is not None and offset <= before[1]:
                found.append(
                    Anomaly(
                        "nonmonotonic-send",
                        f"{topic_partition}: {send.producer}'s batch {send.number} is at {offset}, "
                        f"its batch {before[0]} at {before[1]}",
                    )
                )
            last[send.producer] = (send.number, offset)
    return found


def aborted_reads(history: History, views: Views) -> list[Anomaly]:
    """G1a: somebody read what its producer was told had not happened."""
    found = []
    for topic_partition, of in views.items():
        for send in of.sends:
            if send.outcome is Outcome.FAILED:
                found += [
                    Anomaly("G1a", f"{topic_partition}: {value} was read")
                    for value in send.values
                    if value in of.offsets_of
                ]
    return found


def unwritten_reads(history: History, views: Views) -> list[Anomaly]:
    """Somebody read what nobody sent (there)."""
    found = []
    for topic_partition, of in views.items():
        sent = {value for send in of.sends for value in send.values}
        found += [
            Anomaly("unwritten", f"{topic_partition}: {value!r} was read")
            for value in of.offsets_of
            if value not in sent
        ]
    return found


def skipped_by_groups(history: History, views: Views) -> list[Anomaly]:
    """See `group_skips`."""
    return group_skips(history, {partition: of.final for partition, of in views.items()})


CHECKERS: dict[str, Checker] = {
    "lost-write": lost_writes,
    "unseen": unseen,
    "inconsistent-offsets": inconsistent_offsets,
    "duplicate": duplicates,
    "poll-skip": poll_skips,
    "nonmonotonic-poll": nonmonotonic_polls,
    "nonmonotonic-send": nonmonotonic_sends,
    "G1a": aborted_reads,
    "unwritten": unwritten_reads,
    "two-owners": lambda history, _: two_owners(history.tenures),
    "lost-commit": lambda history, _: lost_commits(history.commits, history.offset_fetches),
    "former-commit": lambda history, _: former_commits(history.commits, history.tenures),
    "group-skip": skipped_by_groups,
}
