"""Spark's source for Kafka, giving ranges of offsets instead of records.

Spark's source plans micro-batches: their offsets and sizes, the handling of what retention has
deleted, checkpoints and progress. Its tasks read records one by one, which costs more than most of
what SQL does with them. This table delegates all planning to Spark's, and gives tasks only the
ranges; workers then fetch the batches (`kafka.wire_reader`). Offsets and checkpoints are those of
Spark's source, so a query can change from one to the other and back.

The table lives in the driver. Tasks get classes of Spark's own, so that other machines need
nothing. Compiled by Janino, which Spark brings along.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from barnabas.spark.java_code import JavaCode
from barnabas.spark.labelled_scan import PARTITIONS_SOURCE, plan_labelled_scans

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
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
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
        return new RangeScan(kafka.newScanBuilder(options).build(), rows, first);
    }
}

class RangeScan implements ScanBuilder, Scan {
    private final Scan kafka;
    private final Rows rows;
    private final ReadMaxRows first;

    RangeScan(Scan kafka, Rows rows, ReadMaxRows first) {
        this.kafka = kafka;
        this.rows = rows;
        this.first = first;
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
        return rows.stream(kafka.toMicroBatchStream(checkpoint), first);
    }
}

class RangeStream
        implements MicroBatchStream, SupportsTriggerAvailableNow, ReportsSourceMetrics {
    private final MicroBatchStream kafka;
    private final Rows rows;
    private final ReadMaxRows first;
    private boolean hasBegun;

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
        boolean isLong = limit instanceof ReadMaxRows
            && ((ReadMaxRows) limit).maxRows() > first.maxRows();
        return ((SupportsTriggerAvailableNow) kafka).latestOffset(
            start, isLong && !hasBegun ? first : limit);
    }

    public ReadLimit getDefaultReadLimit() {
        return ((SupportsTriggerAvailableNow) kafka).getDefaultReadLimit();
    }

    public Offset reportLatestOffset() {
        return ((SupportsTriggerAvailableNow) kafka).reportLatestOffset();
    }

    public void prepareForTriggerAvailableNow() {
        ((SupportsTriggerAvailableNow) kafka).prepareForTriggerAvailableNow();
    }

    public Map metrics(Optional latest) {
        return ((ReportsSourceMetrics) kafka).metrics(latest);
    }

    public String toString() {
        return kafka.toString();
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


def _first_limit(session: SparkSession) -> Any:
    jvm: Any = session.sparkContext._jvm
    return jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit.maxRows(FIRST_RECORDS_MAX)
