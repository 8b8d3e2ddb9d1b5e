"""Plans sources whose rows are in the partitions of their labels already, without a shuffle.

Spark shuffles rows before an operator with state, so that those of a key meet in one task. Rows of
`label` and `parcel` come from the driver, and it can compute where Spark would send each. So a
stream of such rows that implements `java.util.function.IntSupplier` gives the rows of its
micro-batches in as many partitions as it says, each sorted by label. Its scan tells Spark so. Spark
compares that with what the operator needs, and shuffles if it differs.

A micro-batch is then one stage instead of two, and nothing is sorted or written to files.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession

from barnabas.spark.java_code import JavaCode

PARTITIONS_SOURCE: Final = """
class LabelledPartitions {
    static final int SEED = 42;

    // The partitions of rows whose first column is their label, as Spark's HashPartitioning has it.
    static InputPartition[] of(java.util.List rows, int partitions) {
        java.util.List[] groups = new java.util.List[partitions];
        for (int i = 0; i < partitions; i++) {
            groups[i] = new java.util.ArrayList();
        }
        for (int i = 0; i < rows.size(); i++) {
            UnsafeRow row = (UnsafeRow) rows.get(i);
            int hash = org.apache.spark.unsafe.hash.Murmur3_x86_32.hashInt(row.getInt(0), SEED);
            groups[Math.floorMod(hash, partitions)].add(row);
        }
        InputPartition[] made = new InputPartition[partitions];
        for (int i = 0; i < partitions; i++) {
            java.util.Collections.sort(groups[i], new java.util.Comparator() {
                public int compare(Object one, Object other) {
                    return Integer.compare(
                        ((UnsafeRow) one).getInt(0), ((UnsafeRow) other).getInt(0));
                }
            });
            made[i] = new MEMORY.MemoryStreamInputPartition(
                (UnsafeRow[]) groups[i].toArray(new UnsafeRow[groups[i].size()]));
        }
        return made;
    }

    static UnsafeRow row(int label, byte[] parcel) {
        UnsafeRowWriter row = new UnsafeRowWriter(2, parcel.length + 64);
        row.reset();
        row.zeroOutNullBytes();
        row.write(0, label);
        row.write(1, parcel);
        return row.getRow().copy();
    }
}
"""
"""Java that sources of such rows have among their classes: it makes rows, and partitions of them.

It needs imports of UnsafeRow, UnsafeRowWriter and InputPartition.
"""

_SCANS: Final = JavaCode(
    "LabelledScans",
    """
import java.util.function.IntSupplier;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.catalyst.expressions.Ascending$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SortOrder$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.MicroBatchScanExec;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

public class LabelledScans {
    public void plan(Object session) {
        ExperimentalMethods of = ((SparkSession) session).experimental();
        scala.collection.Iterator known = of.extraStrategies().iterator();
        while (known.hasNext()) {
            if (known.next() instanceof LabelledStrategy) {
                return;
            }
        }
        of.extraStrategies_$eq((Seq) of.extraStrategies().appended(new LabelledStrategy()));
    }
}

class LabelledStrategy extends SparkStrategy {
    public Seq apply(LogicalPlan plan) {
        SparkPlan scan = scanOf(plan);
        if (scan == null && plan instanceof Project) {
            // A group's rows have its key once more; Spark's own strategy takes both together.
            scan = scanOf(((Project) plan).child());
            if (scan != null) {
                scan = new ProjectExec(((Project) plan).projectList(), scan);
            }
        }
        return scan == null ? (Seq) Nil$.MODULE$ : (Seq) Nil$.MODULE$.$colon$colon(scan);
    }

    private static SparkPlan scanOf(LogicalPlan plan) {
        if (!(plan instanceof StreamingDataSourceV2ScanRelation)) {
            return null;
        }
        StreamingDataSourceV2ScanRelation of = (StreamingDataSourceV2ScanRelation) plan;
        if (!(of.stream() instanceof IntSupplier) || !of.startOffset().isDefined()
                || !of.endOffset().isDefined()) {
            return null;
        }
        Expression label = (Expression) of.output().head();
        Object order = SortOrder$.MODULE$.apply(label, Ascending$.MODULE$, (Seq) Nil$.MODULE$);
        return new LabelledScan(
            of.output(), of.scan(), (MicroBatchStream) of.stream(),
            (Offset) of.startOffset().get(), (Offset) of.endOffset().get(),
            Option.empty(), Option.apply(Nil$.MODULE$.$colon$colon(order)));
    }
}

public class LabelledScan extends MicroBatchScanExec {
    public LabelledScan(
            Seq output, Scan scan, MicroBatchStream stream, Offset start, Offset end,
            Option keyGroupedPartitioning, Option ordering) {
        super(output, scan, stream, start, end, keyGroupedPartitioning, ordering);
    }

    public Partitioning outputPartitioning() {
        return new HashPartitioning(
            (Seq) Nil$.MODULE$.$colon$colon(output().head()), ((IntSupplier) stream()).getAsInt());
    }

    // Tasks get the operators above it, and it with them, but they do not know this class. Java
    // does not find the method if it is private here.
    public Object writeReplace() {
        return new MicroBatchScanExec(
            output(), scan(), stream(), start(), end(), keyGroupedPartitioning(), ordering());
    }
}
""",
)


def plan_labelled_scans(session: SparkSession) -> bool:
    """Have a session, and those cloned from it, plan such scans; False if Spark has other
    classes."""
    if _SCANS.why_not_in(session):
        return False
    _SCANS.object_in(session).plan(session._jsparkSession)
    return True
