"""A source of Spark's whose rows the driver's Python gives, micro-batch by micro-batch.

    source = PushedRows(session, planned_number(checkpoint))
    source.frame.… .writeStream.… .start()
    source.offer(8, rows)      the next micro-batch has these rows, and ends at offset 8

The caller numbers micro-batches and plans them; Spark's checkpoint has only the numbers. After a
restart Spark repeats a micro-batch that was planned and not committed, with no rows: the caller
plans them again. Rows wait in the JVM until Spark has committed them. Spark asks for new ones all
the time; the answer waits until rows have come, at most a second. Compiled by Janino, which Spark
brings along; tasks get classes of Spark's own.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from barnabas.spark.java_code import JavaCode
from barnabas.spark.labelled_scan import PARTITIONS_SOURCE, plan_labelled_scans
from barnabas.spark.progress import committed_batch

_HEAD: Final = struct.Struct(">ii")
_SOURCE: Final = """
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.IntSupplier;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import MEMORY.MemoryStreamReaderFactory$;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

public class PushedRows {
    public Object source(long number, int partitions) {
        return new PushedTable(number, partitions);
    }
}

class PushedNumber extends Offset {
    final long number;

    PushedNumber(long number) {
        this.number = number;
    }

    public String json() {
        return Long.toString(number);
    }
}

public class PushedTable
        implements SupportsRead, ScanBuilder, Scan, MicroBatchStream, IntSupplier {
    static final StructType SCHEMA = new StructType()
        .add("label", "int", false)
        .add("parcel", "binary", true);
    private final TreeMap waiting = new TreeMap();
    private static final long PATIENCE_MS = 1000;
    private final int partitions;
    private long last;
    private long told = -1;

    PushedTable(long number, int partitions) {
        last = number;
        this.partitions = partitions;
    }

    public int getAsInt() {
        return partitions;
    }

    public Object frame(Object session) {
        return org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(
            (org.apache.spark.sql.classic.SparkSession) session,
            new StreamingRelationV2(
                scala.Option.empty(), name(), this,
                new CaseInsensitiveStringMap(Collections.emptyMap()),
                DataTypeUtils.toAttributes(SCHEMA), scala.Option.empty(), scala.Option.empty(),
                scala.Option.empty()UNNAMED));
    }

    public synchronized void offer(long number, byte[] data) {
        List rows = new ArrayList();
        ByteBuffer given = ByteBuffer.wrap(data);
        while (given.hasRemaining()) {
            int label = given.getInt();
            byte[] parcel = new byte[given.getInt()];
            given.get(parcel);
            rows.add(LabelledPartitions.row(label, parcel));
        }
        waiting.put(Long.valueOf(number), rows);
        last = number;
        notifyAll();
    }

    public String name() {
        return "pushed rows";
    }

    public StructType schema() {
        return SCHEMA;
    }

    public Set capabilities() {
        return EnumSet.of(TableCapability.MICRO_BATCH_READ);
    }

    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        return this;
    }

    public Scan build() {
        return this;
    }

    public StructType readSchema() {
        return SCHEMA;
    }

    public String description() {
        return name();
    }

    public MicroBatchStream toMicroBatchStream(String checkpoint) {
        return this;
    }

    public synchronized Offset latestOffset() {
        long answer = last;
        if (last == told) {
            // The next question gets the rows: so the wait is no part of their micro-batch's time.
            try {
                wait(PATIENCE_MS);
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
        }
        told = answer;
        return answer == 0 ? null : new PushedNumber(answer);
    }

    public synchronized InputPartition[] planInputPartitions(Offset start, Offset end) {
        List rows = new ArrayList();
        long from = ((PushedNumber) start).number;
        long to = ((PushedNumber) end).number;
        Iterator entries = waiting.subMap(
            Long.valueOf(from), false, Long.valueOf(to), true).values().iterator();
        while (entries.hasNext()) {
            rows.addAll((List) entries.next());
        }
        return LabelledPartitions.of(rows, partitions);
    }

    public PartitionReaderFactory createReaderFactory() {
        return MemoryStreamReaderFactory$.MODULE$;
    }

    public Offset initialOffset() {
        return new PushedNumber(0);
    }

    public Offset deserializeOffset(String json) {
        return new PushedNumber(Long.parseLong(json));
    }

    public synchronized void commit(Offset end) {
        waiting.headMap(Long.valueOf(((PushedNumber) end).number), true).clear();
    }

    public void stop() {
    }
}
"""
_TABLES: Final = JavaCode("PushedRows", _SOURCE + PARTITIONS_SOURCE)

PushedRow = tuple[int, bytes]
"""A label, and a parcel."""


class PushedRows:
    """The source of one start of a streaming query. Methods may be called from any thread.

    `number`: of the last micro-batch that the checkpoint has planned, as `planned_number` returns.
    `tasks`: of the operator that takes the rows, which then needs no shuffle.
    """

    def __init__(self, session: SparkSession, number: int, tasks: int = 1) -> None:
        """Raises Py4JError if the classes do not fit this version of Spark."""
        partitions = tasks if plan_labelled_scans(session) else 1
        self._table: Any = _TABLES.object_in(session).source(number, partitions)
        self.frame = DataFrame(self._table.frame(session._jsparkSession), session)
        """Rows of `label` and `parcel`."""

    def offer(self, number: int, rows: Iterable[PushedRow]) -> None:
        """Give the rows of the next micro-batch. Raises Py4JError, OSError if the JVM has ended."""
        parts: list[bytes] = []
        for label, parcel in rows:
            parts += _HEAD.pack(label, len(parcel)), parcel
        self._table.offer(number, b"".join(parts))


def why_no_pushed_rows(session: SparkSession) -> str:
    """Why `PushedRows` cannot be used in a session; empty if it can."""
    return _TABLES.why_not_in(session)


def committed_number(checkpoint: str) -> int:
    """Return the number of the last micro-batch that a checkpoint has committed, 0 before the
    first. Raises ValueError if the checkpoint is of another source."""
    return batch_number(checkpoint, committed_batch(checkpoint))


def planned_number(checkpoint: str) -> int:
    """Return the number of the last micro-batch that a checkpoint has planned, 0 before the first.

    Raises ValueError if the checkpoint is of another source.
    """
    try:
        names = os.listdir(f"{checkpoint}/offsets")
    except FileNotFoundError:
        return 0
    last = max((int(name) for name in names if name.isdigit()), default=-1)
    return batch_number(checkpoint, last)


def batch_number(checkpoint: str, batch_id: int) -> int:
    """Return the number that was offered for a micro-batch of Spark's, 0 before the first.

    Raises ValueError if the checkpoint is of another source. Source: Spark's OffsetSeqLog, whose
    files have a version line, a metadata line, then a line for each source.
    """
    if batch_id < 0:
        return 0
    with open(f"{checkpoint}/offsets/{batch_id}", encoding="utf-8") as file:
        found = json.loads(file.read().splitlines()[2])
    if not isinstance(found, int):
        raise ValueError(f"{checkpoint} is of another source")
    return found
