"""Spark's source for Kafka, giving ranges of offsets instead of records.

Spark's source plans micro-batches: their offsets and sizes, the handling of what retention has
deleted, checkpoints and progress. Its tasks read records one by one, which costs more than most of
what SQL does with them. This table delegates all planning to Spark's, and gives tasks only the
ranges; workers then fetch the batches (`kafka.wire_reader`). Offsets and checkpoints are those of
Spark's source, so a query can change from one to the other and back.

Each topic is a source of its own, which Spark asks where a micro-batch ends. The sources of a query
answer together (`cut_by_time`): if one of them has more than its limit, the micro-batch is a slice
of time (`time_slices`).

The table lives in the driver. Tasks get classes of Spark's own, so that other machines need
nothing. Compiled by Janino, which Spark brings along.
"""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession

from barnabas.kafka.admin import Listed
from barnabas.spark.java_code import JavaCode
from barnabas.spark.labelled_scan import PARTITIONS_SOURCE, plan_labelled_scans
from barnabas.spark.progress import planned_sources
from barnabas.spark.time_slices import OffsetsAfter, Source, TimeSlices

_CLASS: Final = "KafkaRanges"
_SOURCE: Final = """
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.IntSupplier;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReadMaxRows;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import MEMORY.MemoryStreamInputPartition;
import MEMORY.MemoryStreamReaderFactory$;
import org.apache.spark.sql.kafka010.KafkaBatchInputPartition;
import org.apache.spark.sql.kafka010.KafkaOffsetRange;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;

public class KafkaRanges {
    public Object ranges(Object frame, ReadMaxRows first) {
        return frameOf((Dataset) frame, new RangeRows(), first);
    }

    public Object labelled(
            Object frame, ReadMaxRows first, byte[] head, byte[] labels, int partitions) {
        return frameOf((Dataset) frame, new LabelledRows(head, labels, partitions), first);
    }

    public void cutByTime(Object frame, String starts, UnaryOperator slices) {
        Together together = new Together(starts, slices);
        LogicalPlan plan = ((Dataset) frame).queryExecution().analyzed();
        scala.collection.Iterator leaves = plan.collectLeaves().iterator();
        while (leaves.hasNext()) {
            Object leaf = leaves.next();
            if (leaf instanceof StreamingRelationV2
                    && ((StreamingRelationV2) leaf).table() instanceof RangeTable) {
                ((RangeTable) ((StreamingRelationV2) leaf).table()).together = together;
            }
        }
    }

    private static Object frameOf(Dataset given, Rows rows, ReadMaxRows first) {
        StreamingRelationV2 of = (StreamingRelationV2) given.queryExecution().analyzed();
        RangeTable table = new RangeTable((SupportsRead) of.table(), rows, first);
        return org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(
            (org.apache.spark.sql.classic.SparkSession) given.sparkSession(),
            new StreamingRelationV2(
                scala.Option.empty(), of.sourceName(), table, of.extraOptions(),
                DataTypeUtils.toAttributes(rows.schema()), of.catalog(), of.identifier(),
                scala.Option.empty()UNNAMED));
    }
}

interface Rows {
    StructType schema();

    InputPartition[] of(KafkaOffsetRange[] ranges);

    MicroBatchStream stream(MicroBatchStream kafka, ReadMaxRows first);
}

class RangeRows implements Rows {
    public StructType schema() {
        return new StructType()
            .add("topic", "string", false)
            .add("partition", "int", false)
            .add("first", "long", false)
            .add("until", "long", false);
    }

    public InputPartition[] of(KafkaOffsetRange[] ranges) {
        InputPartition[] made = new InputPartition[ranges.length];
        for (int i = 0; i < ranges.length; i++) {
            UnsafeRowWriter row = new UnsafeRowWriter(4);
            row.reset();
            row.zeroOutNullBytes();
            row.write(0, UTF8String.fromString(ranges[i].topic()));
            row.write(1, ranges[i].partition());
            row.write(2, ranges[i].fromOffset());
            row.write(3, ranges[i].untilOffset());
            made[i] = new MemoryStreamInputPartition(new UnsafeRow[] {row.getRow().copy()});
        }
        return made;
    }

    public MicroBatchStream stream(MicroBatchStream kafka, ReadMaxRows first) {
        return new RangeStream(kafka, this, first);
    }
}

class LabelledRows implements Rows {
    private final byte[] head;
    private final int[] labels;
    final int partitions;

    LabelledRows(byte[] head, byte[] labels, int partitions) {
        this.head = head;
        this.labels = new int[labels.length / 4];
        ByteBuffer.wrap(labels).asIntBuffer().get(this.labels);
        this.partitions = partitions;
    }

    public StructType schema() {
        return new StructType().add("label", "int", false).add("parcel", "binary", true);
    }

    public InputPartition[] of(KafkaOffsetRange[] ranges) {
        List rows = new ArrayList();
        for (int i = 0; i < ranges.length; i++) {
            ByteBuffer parcel = ByteBuffer.allocate(head.length + 24);
            parcel.put(head);
            parcel.putLong(ranges[i].partition());
            parcel.putLong(ranges[i].fromOffset());
            parcel.putLong(ranges[i].untilOffset());
            int label = labels[ranges[i].partition() % labels.length];
            rows.add(LabelledPartitions.row(label, parcel.array()));
        }
        return LabelledPartitions.of(rows, partitions);
    }

    public MicroBatchStream stream(MicroBatchStream kafka, ReadMaxRows first) {
        return new LabelledStream(kafka, this, first);
    }
}

class RangeTable implements SupportsRead {
    private final SupportsRead kafka;
    private final Rows rows;
    private final ReadMaxRows first;
    Together together;

    RangeTable(SupportsRead kafka, Rows rows, ReadMaxRows first) {
        this.kafka = kafka;
        this.rows = rows;
        this.first = first;
    }

    public String name() {
        return kafka.name();
    }

    public StructType schema() {
        return rows.schema();
    }

    public Set capabilities() {
        return EnumSet.of(TableCapability.MICRO_BATCH_READ);
    }

    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        return new RangeScan(kafka.newScanBuilder(options).build(), rows, first, together);
    }
}

class RangeScan implements ScanBuilder, Scan {
    private final Scan kafka;
    private final Rows rows;
    private final ReadMaxRows first;
    private final Together together;

    RangeScan(Scan kafka, Rows rows, ReadMaxRows first, Together together) {
        this.kafka = kafka;
        this.rows = rows;
        this.first = first;
        this.together = together;
    }

    public Scan build() {
        return this;
    }

    public StructType readSchema() {
        return rows.schema();
    }

    public String description() {
        return "offsets of " + kafka.description();
    }

    public MicroBatchStream toMicroBatchStream(String checkpoint) {
        MicroBatchStream made = rows.stream(kafka.toMicroBatchStream(checkpoint), first);
        if (together != null) {
            together.add((RangeStream) made);
        }
        return made;
    }
}

class RangeStream
        implements MicroBatchStream, SupportsTriggerAvailableNow, ReportsSourceMetrics {
    private final MicroBatchStream kafka;
    private final Rows rows;
    private final ReadMaxRows first;
    private boolean hasBegun;
    Together together;
    // The start that Spark gives next, if it is known; and where the micro-batch ends that begins
    // there, until Spark asks for it.
    Offset next;
    Offset planned;

    RangeStream(MicroBatchStream kafka, Rows rows, ReadMaxRows first) {
        this.kafka = kafka;
        this.rows = rows;
        this.first = first;
    }

    public InputPartition[] planInputPartitions(Offset start, Offset end) {
        hasBegun = true;
        InputPartition[] given = kafka.planInputPartitions(start, end);
        KafkaOffsetRange[] ranges = new KafkaOffsetRange[given.length];
        for (int i = 0; i < given.length; i++) {
            ranges[i] = ((KafkaBatchInputPartition) given[i]).offsetRange();
        }
        return rows.of(ranges);
    }

    public PartitionReaderFactory createReaderFactory() {
        return MemoryStreamReaderFactory$.MODULE$;
    }

    public Offset initialOffset() {
        return kafka.initialOffset();
    }

    public Offset deserializeOffset(String json) {
        return kafka.deserializeOffset(json);
    }

    public void commit(Offset end) {
        kafka.commit(end);
    }

    public void stop() {
        kafka.stop();
    }

    public Offset latestOffset() {
        return kafka.latestOffset();
    }

    public Offset latestOffset(Offset start, ReadLimit limit) {
        return together == null
            ? proposed(start, limited(limit)) : together.end(this, start);
    }

    Offset proposed(Offset start, ReadLimit limit) {
        return ((SupportsTriggerAvailableNow) kafka).latestOffset(start, limit);
    }

    ReadLimit limited(ReadLimit limit) {
        boolean isLong = limit instanceof ReadMaxRows
            && ((ReadMaxRows) limit).maxRows() > first.maxRows();
        return isLong && !hasBegun ? first : limit;
    }

    public ReadLimit getDefaultReadLimit() {
        return ((SupportsTriggerAvailableNow) kafka).getDefaultReadLimit();
    }

    public Offset reportLatestOffset() {
        return ((SupportsTriggerAvailableNow) kafka).reportLatestOffset();
    }

    public void prepareForTriggerAvailableNow() {
        together = null;
        ((SupportsTriggerAvailableNow) kafka).prepareForTriggerAvailableNow();
    }

    public Map metrics(Optional latest) {
        return ((ReportsSourceMetrics) kafka).metrics(latest);
    }

    public String toString() {
        return kafka.toString();
    }
}

// The streams of one query. Spark asks each of them, one after the other, where the micro-batch
// ends. The first plans for all, from where Spark goes on with each.
class Together {
    private final UnaryOperator slices;
    private final List members = new ArrayList();
    // The offsets at which a query goes on, for each stream a line; empty if it is new.
    private final String starts;
    private boolean hasBegun;

    Together(String starts, UnaryOperator slices) {
        this.starts = starts;
        this.slices = slices;
    }

    void add(RangeStream member) {
        members.add(member);
        member.together = this;
    }

    Offset end(RangeStream member, Offset start) {
        if (!hasBegun) {
            hasBegun = true;
            begin();
        }
        if (!start.equals(member.next)) {
            // Another start than expected: all are known when Spark has asked each stream.
            // Spark asks for the end of the topic, too, which the source only has after this.
            member.proposed(start, member.getDefaultReadLimit());
            member.next = start;
            member.planned = start;
        } else if (member.planned == null) {
            plan();
        }
        Offset end = member.planned;
        member.planned = null;
        member.next = end;
        return end;
    }

    private void begin() {
        String[] known = starts.split("\\n");
        for (int i = 0; i < members.size(); i++) {
            RangeStream one = (RangeStream) members.get(i);
            if (starts.isEmpty()) {
                one.next = one.initialOffset();
            } else if (known.length == members.size()) {
                one.next = one.deserializeOffset(known[i]);
            }
        }
    }

    private void plan() {
        boolean isBehind = false;
        StringBuilder told = new StringBuilder();
        for (int i = 0; i < members.size(); i++) {
            RangeStream one = (RangeStream) members.get(i);
            ReadLimit limit = one.limited(one.getDefaultReadLimit());
            one.planned = one.proposed(one.next, limit);
            Offset reported = one.reportLatestOffset();
            Offset end = reported == null ? one.planned : reported;
            isBehind |= !one.planned.equals(end);
            told.append(limit instanceof ReadMaxRows
                ? ((ReadMaxRows) limit).maxRows() : Long.MAX_VALUE).append('\\n');
            told.append(one.next.json()).append('\\n').append(end.json()).append('\\n');
        }
        if (isBehind) {
            String[] ends = ((String) slices.apply(told.toString())).split("\\n");
            for (int i = 0; i < members.size(); i++) {
                RangeStream one = (RangeStream) members.get(i);
                one.planned = one.deserializeOffset(ends[i]);
            }
        }
    }
}

class LabelledStream extends RangeStream implements IntSupplier {
    private final int partitions;

    LabelledStream(MicroBatchStream kafka, LabelledRows rows, ReadMaxRows first) {
        super(kafka, rows, first);
        partitions = rows.partitions;
    }

    public int getAsInt() {
        return partitions;
    }
}
"""

FIRST_RECORDS_MAX: Final = 20_000
"""Limits the first micro-batch after a start, so that its results come soon. A lower limit of the
source's counts instead."""
_OLDER_SOURCES: Final = "spark.sql.streaming.disabledV2MicroBatchReaders"
_WRAPPER: Final = JavaCode(_CLASS, _SOURCE + PARTITIONS_SOURCE)


def why_no_ranges(session: SparkSession) -> str:
    """Why `ranges_of` cannot be used in a session; empty if it can."""
    if "kafka" in str(session.conf.get(_OLDER_SOURCES, "")).lower():
        return f"{_OLDER_SOURCES} asks for Spark's older source"
    return _WRAPPER.why_not_in(session)


def ranges_of(records: DataFrame) -> DataFrame:
    """The ranges of what `readStream.format("kafka")` loads: topic, partition, first, until.

    A row is of one partition and one micro-batch; its last offset is the one before `until`.
    """
    session = records.sparkSession
    made = _WRAPPER.object_in(session).ranges(records._jdf, _first_limit(session))
    return DataFrame(made, session)


def labelled_ranges_of(
    records: DataFrame, head: bytes, labels: Sequence[int], tasks: int
) -> tuple[DataFrame, bool]:
    """The same as rows of `label` and `parcel`: `head`, then partition, first and until in eight
    bytes each. Partition p has the label p modulo their number.

    Also returns whether an operator of so many tasks, grouped by label, needs no shuffle.
    """
    session = records.sparkSession
    is_placed = plan_labelled_scans(session)
    packed = struct.pack(f">{len(labels)}i", *labels)
    made = _WRAPPER.object_in(session).labelled(
        records._jdf, _first_limit(session), head, packed, tasks if is_placed else 1
    )
    return DataFrame(made, session), is_placed


def cut_by_time(frame: DataFrame, offsets_after: OffsetsAfter, checkpoint: str) -> None:
    """Have micro-batches of a query that is behind be slices of time.

    `frame` has all of the query's ranges, of several topics; `checkpoint` is the one that the query
    is about to start from. A micro-batch fails of what `offsets_after` raises. Streams with the
    trigger `availableNow` are not cut.
    """
    session = frame.sparkSession
    starts = "\n".join(planned_sources(checkpoint))
    _WRAPPER.object_in(session).cutByTime(frame._jdf, starts, _Slices(offsets_after))
    gateway: Any = session.sparkContext._gateway
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]  # PySpark's


class _Slices:
    """What Java calls: it gets the limit, the starts and the ends of each source, a line each."""

    class Java:
        """For Py4J."""

        implements: ClassVar = ["java.util.function.UnaryOperator"]

    def __init__(self, offsets_after: OffsetsAfter) -> None:
        self._offsets_after = offsets_after
        self._slices = TimeSlices()

    def apply(self, told: str) -> str:
        """Return where the micro-batch ends, for each source a line."""
        lines = iter(told.splitlines())
        sources = [
            Source(_listed(starts), _listed(ends), int(limit))
            for limit, starts, ends in zip(lines, lines, lines, strict=True)
        ]
        return "\n".join(map(_offset, self._slices.ends(sources, self._offsets_after)))


def _listed(offset: str) -> Listed:
    """An offset of Spark's source."""
    return {
        (topic, int(partition)): at
        for topic, of in json.loads(offset).items()
        for partition, at in of.items()
    }


def _offset(listed: Listed) -> str:
    """The same as Spark's source writes it."""
    offset: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for (topic, partition), at in listed.items():
        offset[topic][str(partition)] = at
    return json.dumps(offset)


def _first_limit(session: SparkSession) -> Any:
    jvm: Any = session.sparkContext._jvm
    return jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit.maxRows(FIRST_RECORDS_MAX)
