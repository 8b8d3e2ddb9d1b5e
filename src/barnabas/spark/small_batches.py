"""Makes Spark's driver work less for each micro-batch.

Spark plans each micro-batch again, which takes longer than its tasks if there is little data.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable
from typing import Any, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # comes without types
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.utils import ForeachBatchFunction

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


_THREADS: Final = JavaCode(
    "SettingsOfThreads",
    """
import java.lang.reflect.Field;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;

public class SettingsOfThreads {
    public void use(Object session) throws Exception {
        SQLConf$.MODULE$.getFallbackConf();
        Field field = SQLConf$.class.getDeclaredField("fallbackConf");
        field.setAccessible(true);
        field.set(null, new Settings((SparkSession) session));
    }
}

class Settings extends ThreadLocal {
    private final SparkSession session;

    Settings(SparkSession session) {
        this.session = session;
    }

    public Object get() {
        return session.sparkContext().isStopped() ? super.get() : session.sessionState().conf();
    }

    protected Object initialValue() {
        return new SQLConf();
    }
}
""",
)

_ORIGINS: Final = JavaCode(
    "OriginsOfSettings",
    """
import java.lang.reflect.Field;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;

public class OriginsOfSettings {
    public void forget(Object configuration) throws Exception {
        ((Configuration) configuration).size();
        Field field = Configuration.class.getDeclaredField("updatingResource");
        field.setAccessible(true);
        ((Map) field.get(configuration)).clear();
    }
}
""",
)


def use_in_all_threads(session: SparkSession) -> None:
    """Have threads without a session use the settings of this one.

    Those that serve a task's state are such threads. With Spark's defaults they generate code for
    each task, which takes longer than it runs.
    """
    try:
        _THREADS.object_in(session).use(session._jsparkSession)
    except Py4JError as error:
        _log.debug("threads without a session keep Spark's defaults: %s", error)


def forget_origins(session: SparkSession) -> None:
    """Have Hadoop's configuration forget the files that its settings are from.

    Each micro-batch with state sends the configuration to its tasks. Beside each of a thousand
    settings is the name of its file, compressed by itself, which takes longer than all the rest.
    """
    try:
        _ORIGINS.object_in(session).forget(session.sparkContext._jsc.hadoopConfiguration())
    except Py4JError as error:
        _log.debug("Hadoop's settings are sent with their origins: %s", error)


Collect = Callable[[], list[bytes]]
"""Runs a micro-batch, and returns the values of a column of type binary, none of them null.

Raises as `DataFrame.collect`.
"""


def for_each_batch(
    writer: DataStreamWriter,
    session: SparkSession,
    column: int,
    take: Callable[[Collect, int], None],
) -> DataStreamWriter:
    """Have a stream call `take` for each micro-batch; `column`: the one that it collects.

    `DataStreamWriter.foreachBatch` makes a session of Python's for each, which takes some twenty
    calls to the JVM.
    """
    gateway: Any = session.sparkContext._gateway
    sources = gateway.jvm.org.apache.spark.sql.execution.streaming.sources
    function = _BatchFunction(session, column, take)
    try:
        sources.PythonForeachBatchHelper.callForeachBatch(writer._jwrite, function)
    except TypeError as error:  # another version has no such class there
        _log.debug("PySpark passes micro-batches: %s", error)
        return writer.foreachBatch(
            lambda rows, batch_id: take(
                lambda: collect_binary(session, rows._jdf, column), batch_id
            )
        )
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]  # PySpark's
    return writer


class _BatchFunction(ForeachBatchFunction):
    """What PySpark gives the JVM, without the session."""

    def __init__(
        self, session: SparkSession, column: int, take: Callable[[Collect, int], None]
    ) -> None:
        self._session = session
        self._column = column
        self._take = take

    def call(self, jdf: Any, batch_id: int) -> None:
        self._take(lambda: collect_binary(self._session, jdf, self._column), batch_id)


def collect_binary(session: SparkSession, rows: Any, column: int) -> list[bytes]:
    """Return the values of a column of the JVM's frame `rows`, as `Collect` does.

    Those of a micro-batch are an RDD already, so their tasks run without another plan and without a
    description of it.
    """
    try:
        collector = _COLLECTOR.object_in(session)
    except Py4JError as error:
        _log.debug("rows are collected by Spark's own way: %s", error)
        return _collected(DataFrame(rows, session), column)
    data: bytes | None = collector.collect(rows, column)
    if data is None:
        return _collected(DataFrame(rows, session), column)
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
