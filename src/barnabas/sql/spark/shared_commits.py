"""Commits what the exactly-once queries of a shared stream have written.

The results of all queries of a micro-batch are the transactions of one sink: one decision in its
journal commits them all (`barnabas.spark.datasource`), under the number that the ledger gives.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.spark.datasource.committer import Committer
from barnabas.spark.datasource.options import options_of
from barnabas.spark.pushed_rows import committed_number, planned_number
from barnabas.sql.spark.hosting import SharedResults
from barnabas.sql.spark.options import SparkQueryOptions
from barnabas.sql.spark.parcels import Written
from barnabas.sql.spark.results import ExactlyOnce, abort_results, commit_results
from barnabas.sql.spark.shared_ledger import Ledger, exactly_once_id
from barnabas.sql.spark.topology import member_of


class SharedCommits:
    """The driver's side of that sink. A stream without exactly-once queries has none.

    Belongs to the thread that runs micro-batches.
    """

    def __init__(self, options: SparkQueryOptions, checkpoint: str) -> None:
        self._options = options
        self._checkpoint = checkpoint
        self._committer: Committer | None = None

    def open_ledger(self, tasks: int) -> Ledger:
        """Go on from what Spark has committed, after all that was decided is committed, too.

        `tasks`: of a new ledger. Raises CheckpointError, OSError, KafkaException, CoordinatorError.
        """
        self.close()
        committed = committed_number(self._checkpoint)
        planned = planned_number(self._checkpoint)
        ledger_id = exactly_once_id(self._checkpoint)
        if ledger_id is None:
            return Ledger.open(self._checkpoint, committed, planned, tasks)
        committer = self._take_over(ledger_id)
        decided = committer.decided_batch
        # The state has the results before, and brokers forget old transactions.
        lost = committer.settle() if decided > committed else ()
        ledger = Ledger.open(
            self._checkpoint,
            committed,
            planned,
            tasks,
            decided=decided,
            lost={member_of(one.task) for one in lost},
        )
        committer.finish()
        return ledger

    def begin(self, ledger: Ledger) -> None:
        """Be ready to commit, for a query that joins. Raises KafkaException, CoordinatorError."""
        if self._committer is None:
            self._take_over(ledger.id)

    def commit(self, number: int, written: Sequence[Written]) -> None:
        """Commit what the labels of a micro-batch have written. Raises as `commit_results` does."""
        if self._committer is not None:
            commit_results(self._committer, number, written)

    def abort(self, number: int) -> None:
        """End what the tasks of a failed micro-batch have left open."""
        if self._committer is not None:
            abort_results(self._committer, number)

    def close(self) -> None:
        """Close the connections."""
        committer, self._committer = self._committer, None
        if committer is not None:
            committer.close()

    def of_workers(self, ledger: Ledger) -> SharedResults:
        """The names with which workers write."""
        options = self._options
        return SharedResults(self._sink(ledger.id), options.service_id, options.marks_results)

    def _take_over(self, ledger_id: str) -> Committer:
        options = self._options
        sink = options_of(options.bootstrap_servers, options.clients)
        self._committer = ExactlyOnce(sink, self._sink(ledger_id), ledger_id).committer()
        return self._committer

    def _sink(self, ledger_id: str) -> str:
        return f"{self._options.service_id}shared-{ledger_id}"
