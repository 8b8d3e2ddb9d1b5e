"""A query's verdicts on single records (accept, release, reject), written to a directory.

`acknowledge` runs in `foreachBatch`; the source, in another process of the driver, reads what it
wrote when the batch is committed. A file per batch, which a repeated batch writes again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from barnabas.base.ids import Uuid
from barnabas.spark.datasource.share_ledger import Verdict
from barnabas.spark.datasource.share_ranges import Delivery, Partition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ACCEPT: Final = "accept"
NAMES: Final = {"release": Verdict.RELEASE, "reject": Verdict.REJECT}
_SUFFIX: Final = ".verdicts.json"


class VerdictError(ValueError):
    """A verdict is none of accept, release and reject, or a file of verdicts is damaged."""


def acknowledge(batch: DataFrame, batch_id: int, verdict: str, directory: str) -> dict[str, int]:
    """Decide in `foreachBatch` what happens to each record; once for a batch, with all that differ.

    `verdict` is the column that holds `accept`, `release` (deliver it again, to anyone) or `reject`
    (never again); `batch` also needs the source's columns topic, partition, offset and
    deliveryCount. Records that the frame does not have are accepted. It takes effect when the batch
    is committed. `directory` is the source's option `verdicts`. Returns how many records were
    released and rejected. Raises VerdictError for any other value, null too.
    """
    from pyspark.sql import functions as f

    others = batch.where(f.col(verdict).isNull() | (f.col(verdict) != ACCEPT))
    rows = others.select("topic", "partition", "offset", "deliveryCount", verdict).collect()
    write_verdicts(directory, batch_id, (tuple(row) for row in rows))
    return {name: sum(row[4] == name for row in rows) for name in NAMES}


def write_verdicts(
    directory: str, batch_id: int, rows: Iterable[tuple[str, int, int, int, str | None]]
) -> None:
    """Write the verdicts of a batch durably. Raises VerdictError."""
    columns: dict[str, list[list[Any]]] = {name: [] for name in NAMES}
    for topic, partition, offset, count, name in sorted(rows, key=lambda row: row[:4]):
        if name not in columns:
            raise VerdictError(
                f"{topic}-{partition} offset {offset}: {name!r} is none of accept, release, reject"
            )
        entries = columns[name]
        if entries and _ends_before(entries[-1], [topic, partition, offset, count]):
            entries[-1][3] = offset
            continue
        entries.append([topic, partition, offset, offset, count])
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, f"{batch_id}{_SUFFIX}")
    with open(f"{path}.partial", "w", encoding="utf-8") as file:
        json.dump(columns, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.partial", path)
    # Lost with the machine's power, a verdict would be an acceptance.
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def read_verdicts(
    directory: str, topic_ids: Mapping[str, Uuid]
) -> tuple[dict[Verdict, list[Delivery]], list[str]]:
    """Return all verdicts in a directory, and the files that they are in. Raises VerdictError."""
    verdicts: dict[Verdict, list[Delivery]] = {verdict: [] for verdict in NAMES.values()}
    paths: list[str] = []
    for name in sorted(os.listdir(directory) if os.path.isdir(directory) else ()):
        if not name.endswith(_SUFFIX):
            continue
        path = os.path.join(directory, name)
        try:
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
            for text, verdict in NAMES.items():
                for topic, index, first, last, count in content[text]:
                    if topic in topic_ids:
                        partition = Partition(topic_ids[topic], index)
                        verdicts[verdict].append(Delivery(partition, first, last, count))
        except (ValueError, KeyError, TypeError) as error:
            raise VerdictError(f"{path} is not a file of verdicts: {error}") from error
        paths.append(path)
    return verdicts, paths


def _ends_before(entry: list[Any], record: list[Any]) -> bool:
    topic, partition, _, last, count = entry
    return record == [topic, partition, last + 1, count]
