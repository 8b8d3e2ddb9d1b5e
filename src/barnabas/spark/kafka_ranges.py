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

from typing import Final

from pyspark.sql import DataFrame, SparkSession

from barnabas.spark.java_code import JavaCode
from barnabas.spark.local_files import HAS_MOVED_CLASSES

_CLASS: Final = "KafkaRanges"
_SOURCE: Final = """
import java.util.EnumSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
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

public class KafkaRanges implements java.util.function.Function {
    public Object apply(Object frame) {
        Dataset given = (Dataset) frame;
        StreamingRelationV2 of = (StreamingRelationV2) given.queryExecution().analyzed();
        RangeTable table = new RangeTable((SupportsRead) of.table());
        return org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(
            (org.apache.spark.sql.classic.SparkSession) given.sparkSession(),
            new StreamingRelationV2(
                scala.Option.empty(), of.sourceName(), table, of.extraOptions(),
                DataTypeUtils.toAttributes(RangeTable.SCHEMA), of.catalog(), of.identifier(),
                scala.Option.empty()));
    }
}

class RangeTable implements SupportsRead {
    static final StructType SCHEMA = new StructType()
        .add("topic", "string", false)
        .add("partition", "int", false)
        .add("first", "long", false)
        .add("until", "long", false);
    private final SupportsRead kafka;

    RangeTable(SupportsRead kafka) {
        this.kafka = kafka;
    }

    public String name() {
        return kafka.name();
    }

    public StructType schema() {
        return SCHEMA;
    }

    public Set capabilities() {
        return EnumSet.of(TableCapability.MICRO_BATCH_READ);
    }

    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        return new RangeScan(kafka.newScanBuilder(options).build());
    }
}

class RangeScan implements ScanBuilder, Scan {
    private final Scan kafka;

    RangeScan(Scan kafka) {
        this.kafka = kafka;
    }

    public Scan build() {
        return this;
    }

    public StructType readSchema() {
        return RangeTable.SCHEMA;
    }

    public String description() {
        return "offsets of " + kafka.description();
    }

    public MicroBatchStream toMicroBatchStream(String checkpoint) {
        return new RangeStream(kafka.toMicroBatchStream(checkpoint));
    }
}

class RangeStream
        implements MicroBatchStream, SupportsTriggerAvailableNow, ReportsSourceMetrics {
    private final MicroBatchStream kafka;

    RangeStream(MicroBatchStream kafka) {
        this.kafka = kafka;
    }

    public InputPartition[] planInputPartitions(Offset start, Offset end) {
        InputPartition[] given = kafka.planInputPartitions(start, end);
        InputPartition[] made = new InputPartition[given.length];
        for (int i = 0; i < given.length; i++) {
            KafkaOffsetRange range = ((KafkaBatchInputPartition) given[i]).offsetRange();
            UnsafeRowWriter row = new UnsafeRowWriter(4);
            row.reset();
            row.zeroOutNullBytes();
            row.write(0, UTF8String.fromString(range.topic()));
            row.write(1, range.partition());
            row.write(2, range.fromOffset());
            row.write(3, range.untilOffset());
            made[i] = new MemoryStreamInputPartition(new UnsafeRow[] {row.getRow().copy()});
        }
        return made;
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
""".replace("MEMORY", f"org.apache.spark.sql.execution.streaming{'.runtime' * HAS_MOVED_CLASSES}")

_OLDER_SOURCES: Final = "spark.sql.streaming.disabledV2MicroBatchReaders"
_WRAPPER: Final = JavaCode(_CLASS, _SOURCE)


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
    return DataFrame(_WRAPPER.object_in(session).apply(records._jdf), session)
