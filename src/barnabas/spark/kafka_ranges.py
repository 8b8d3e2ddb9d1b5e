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
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from barnabas.spark.java_code import JavaCode
from barnabas.spark.labelled_scan import PARTITIONS_SOURCE, plan_labelled_scans
from barnabas.spark.local_files import HAS_MOVED_CLASSES

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
    public Object ranges(Object frame) {
        return frameOf((Dataset) frame, new RangeRows());
    }

    public Object labelled(Object frame, byte[] head, byte[] labels, int partitions) {
        return frameOf((Dataset) frame, new LabelledRows(head, labels, partitions));
    }

    private static Object frameOf(Dataset given, Rows rows) {
        StreamingRelationV2 of = (StreamingRelationV2) given.queryExecution().analyzed();
        RangeTable table = new RangeTable((SupportsRead) of.table(), rows);
        return org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(
            (org.apache.spark.sql.classic.SparkSession) given.sparkSession(),
            new StreamingRelationV2(
                scala.Option.empty(), of.sourceName(), table, of.extraOptions(),
                DataTypeUtils.toAttributes(rows.schema()), of.catalog(), of.identifier(),
                scala.Option.empty()));
    }
}

interface Rows {
    StructType schema();

    InputPartition[] of(KafkaOffsetRange[] ranges);

    MicroBatchStream stream(MicroBatchStream kafka);
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

    public MicroBatchStream stream(MicroBatchStream kafka) {
        return new RangeStream(kafka, this);
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

    public MicroBatchStream stream(MicroBatchStream kafka) {
        return new LabelledStream(kafka, this);
    }
}

class RangeTable implements SupportsRead {
    private final SupportsRead kafka;
    private final Rows rows;

    RangeTable(SupportsRead kafka, Rows rows) {
        this.kafka = kafka;
        this.rows = rows;
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
        return new RangeScan(kafka.newScanBuilder(options).build(), rows);
    }
}

class RangeScan implements ScanBuilder, Scan {
    private final Scan kafka;
    private final Rows rows;

    RangeScan(Scan kafka, Rows rows) {
        this.kafka = kafka;
        this.rows = rows;
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
        return rows.stream(kafka.toMicroBatchStream(checkpoint));
    }
}

class RangeStream
        implements MicroBatchStream, SupportsTriggerAvailableNow, ReportsSourceMetrics {
    private final MicroBatchStream kafka;
    private final Rows rows;

    RangeStream(MicroBatchStream kafka, Rows rows) {
        this.kafka = kafka;
        this.rows = rows;
    }

    public InputPartition[] planInputPartitions(Offset start, Offset end) {
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
        return ((SupportsTriggerAvailableNow) kafka).latestOffset(start, limit);
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

    LabelledStream(MicroBatchStream kafka, LabelledRows rows) {
        super(kafka, rows);
        partitions = rows.partitions;
    }

    public int getAsInt() {
        return partitions;
    }
}
""".replace("MEMORY", f"org.apache.spark.sql.execution.streaming{'.runtime' * HAS_MOVED_CLASSES}")

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
    return DataFrame(_WRAPPER.object_in(session).ranges(records._jdf), session)


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
        records._jdf, head, packed, tasks if is_placed else 1
    )
    return DataFrame(made, session), is_placed
