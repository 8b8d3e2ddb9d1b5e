"""Makes Spark's driver work less for each micro-batch.

Spark plans each micro-batch again, which takes longer than its tasks if there is little data.
"""

from __future__ import annotations

import logging
import struct
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # comes without types
from pyspark.sql import DataFrame, SparkSession

from barnabas.spark.java_code import JavaCode

_log = logging.getLogger(__name__)
_LENGTH: Final = struct.Struct(">i")

_COLLECTOR: Final = JavaCode(
    "RowCollector",
    """
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.SparkPlan;

public class RowCollector {
    public byte[] collect(Object frame, int column) throws IOException {
        Dataset given = (Dataset) frame;
        LogicalPlan plan = given.queryExecution().analyzed();
        if (!(plan instanceof LogicalRDD)) {
            return null;
        }
        SparkSession session = (SparkSession) given.sparkSession();
        SparkPlan scan = (SparkPlan) session.sessionState().planner().plan(plan).next();
        InternalRow[] rows = scan.executeCollect();
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        for (int i = 0; i < rows.length; i++) {
            byte[] value = rows[i].getBinary(column);
            out.writeInt(value.length);
            out.write(value);
        }
        return bytes.toByteArray();
    }
}
""",
)

_RULES: Final = JavaCode(
    "OptimizerRules",
    """
import org.apache.spark.sql.catalyst.optimizer.Optimizer;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.rules.RuleExecutor;
import org.apache.spark.sql.classic.SparkSession;

public class OptimizerRules {
    public String optional(Object session) {
        Optimizer optimizer = ((SparkSession) session).sessionState().optimizer();
        scala.collection.Seq needed = optimizer.nonExcludableRules();
        StringBuilder names = new StringBuilder();
        scala.collection.Iterator batches = optimizer.defaultBatches().iterator();
        while (batches.hasNext()) {
            RuleExecutor.Batch batch = (RuleExecutor.Batch) batches.next();
            scala.collection.Iterator rules = batch.rules().iterator();
            while (rules.hasNext()) {
                String name = ((Rule) rules.next()).ruleName();
                if (!needed.contains(name)) {
                    names.append(names.length() == 0 ? "" : ",").append(name);
                }
            }
        }
        return names.toString();
    }
}
""",
)


def collect_binary(rows: DataFrame, column: int) -> list[bytes]:
    """Return the values of a column of type binary, none of them null.

    For the rows that `foreachBatch` passes: they are an RDD already, so their tasks run without
    another plan and without a description of it. Raises as `DataFrame.collect`.
    """
    try:
        collector = _COLLECTOR.object_in(rows.sparkSession)
    except Py4JError as error:
        _log.debug("rows are collected by Spark's own way: %s", error)
        return _collected(rows, column)
    data: bytes | None = collector.collect(rows._jdf, column)
    if data is None:
        return _collected(rows, column)
    values: list[bytes] = []
    at = 0
    while at < len(data):
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        values.append(data[at : at + length])
        at += length
    return values


def _collected(rows: DataFrame, column: int) -> list[bytes]:
    return [bytes(row[column]) for row in rows.collect()]


def optional_rules(session: SparkSession) -> str:
    """Return the names of the optimizer's rules that may be excluded, separated by commas.

    Empty if Spark has other classes.
    """
    try:
        names: str = _RULES.object_in(session).optional(session._jsparkSession)
    except Py4JError as error:
        _log.debug("all of the optimizer's rules run: %s", error)
        return ""
    return names
