"""Marks: what keeps ids and versions of deleted schemas from coming back."""

from collections.abc import Sequence

from barnabas.registry import subjects
from barnabas.registry.core.decision import View
from barnabas.registry.store.records import MarkValue, NoopKey, Record, SchemaValue


def marks(view: View, gone: Sequence[SchemaValue]) -> list[Record]:
    """The mark that versions of one subject leave when they are deleted for good.

    The topic forgets a deleted record at its next compaction. What it would forget has to be
    written down if it was the subject's highest version or the context's highest id; all else
    follows from the records that stay. One subject has one mark, the latest.
    """
    if not gone:
        return []
    subject = gone[0].subject
    version_last = view.state.next_version(subject) - 1
    id_last = view.state.max_id(subjects.context_of(subject))
    if max(value.version for value in gone) < version_last and all(
        value.id < id_last for value in gone
    ):
        return []
    return [Record(NoopKey(subject), MarkValue(subject, version_last, id_last))]
