"""The warehouse as a table of Iceberg: the S3 server, the worker that writes, and the checks.

Checks read the table from the bucket by another library than that which wrote it.
"""

from __future__ import annotations

import importlib.util
import re
import socket
from typing import Any, Final

from barnabas.demo.access import Access
from barnabas.demo.contract import Truth
from barnabas.demo.lake import worker
from barnabas.demo.lake.place import ACCESS_KEY, REGION, SECRET_KEY, Place
from barnabas.demo.lake.worker import NAMESPACE, OFFSET_COLUMN, PARTITION_COLUMN, ROOT, TABLE
from barnabas.demo.outcome import Check
from barnabas.demo.processes import ChildSpec
from barnabas.demo.topics import USER_ACTIVITY
from barnabas.demo.workspace import ICEBERG, Settings, Workspace

_ANSWER_SECONDS_MAX = 1.0
_METADATA: Final = f"{ROOT}/{NAMESPACE}/{TABLE}/metadata"
_VERSION: Final = re.compile(r"v([0-9]+)\.metadata\.json")
_COLUMNS: Final = ("event_id", "amount_cents", PARTITION_COLUMN, OFFSET_COLUMN)


class NoLakeError(Exception):
    """The warehouse is not Iceberg; the message says in a few words why."""


class Lake:
    """The demo's bucket and what is written to it."""

    def __init__(self, workspace: Workspace, settings: Settings, bootstrap: str) -> None:
        """Make the bucket's directory. Raises NoLakeError."""
        if settings.warehouse != ICEBERG or settings.bucket_port is None:
            raise NoLakeError("as this directory was made for")
        if importlib.util.find_spec("pyiceberg") is None:
            raise NoLakeError("pyiceberg is not installed")
        self._workspace = workspace
        self._settings = settings
        self._bootstrap = bootstrap
        self.place = Place(workspace, settings.bucket_port)
        try:
            self.place.prepare()
        except OSError as error:
            raise NoLakeError(str(error)) from error

    def answers(self) -> bool:
        """Return whether the S3 server takes connections, asked once."""
        address = ("127.0.0.1", self.place.port)
        try:
            with socket.create_connection(address, _ANSWER_SECONDS_MAX):
                return True
        except OSError:
            return False

    def worker_spec(self, access: Access | None) -> ChildSpec:
        """Return how to start the worker. Raises OSError."""
        return worker.worker_spec(
            self._workspace, self._settings, self._bootstrap, self.place, access
        )

    def checks(self, truth: Truth) -> list[Check]:
        """Return the table beside the truth. Raises LakeError."""
        return checks(self.place, truth)

    @property
    def where(self) -> str:
        """A hint for users: what to look for, and where."""
        return f"{worker.NAMESPACE}.{worker.TABLE} in s3://{worker.ROOT}"


class LakeError(Exception):
    """The table cannot be read; the message says why."""


def checks(place: Place, truth: Truth) -> list[Check]:
    """Hold the table against the truth. Raises LakeError."""
    from pyarrow import ArrowException

    try:
        rows = _read(place)
    except (OSError, ValueError, ArrowException) as error:
        raise LakeError(f"the warehouse's table cannot be read: {error}") from error
    return compare(rows, truth)


def compare(rows: Any, truth: Truth) -> list[Check]:
    """Compare the table's rows, None where there is no table.

    Events are sent twice now and then, on purpose or by a restart, and so are in the topic. But no
    record of the topic may be in the table twice.
    """
    events = truth["events"][USER_ACTIVITY]
    revenue = truth["figures"]["conversion"]["revenue_cents"]
    if rows is None:
        return [Check("events in the warehouse", "nothing", f"{events:,}", events == 0)]
    by_event = rows.group_by("event_id").aggregate([("amount_cents", "max")])
    places = rows.group_by([PARTITION_COLUMN, OFFSET_COLUMN]).aggregate([([], "count_all")])
    return [
        _number("events in the warehouse", by_event.num_rows, events),
        _number(
            "revenue cents in the warehouse",
            sum(by_event["amount_cents_max"].to_pylist()),
            revenue,
        ),
        _number("records twice in the warehouse", rows.num_rows - places.num_rows, 0),
    ]


def _read(place: Place) -> Any:
    """Return the columns that are compared, as the newest version of the table has them."""
    from pyarrow import fs
    from pyiceberg.table import StaticTable

    access_key, secret_key = place.key(ACCESS_KEY), place.key(SECRET_KEY)
    bucket = fs.S3FileSystem(
        access_key=access_key,
        secret_key=secret_key,
        region=REGION,
        scheme="http",
        endpoint_override=place.url.removeprefix("http://"),
    )
    files = bucket.get_file_info(fs.FileSelector(_METADATA, allow_not_found=True))
    versions = {
        int(match[1]): info.path for info in files if (match := _VERSION.fullmatch(info.base_name))
    }
    if not versions:
        return None
    table = StaticTable.from_metadata(
        f"s3a://{versions[max(versions)]}",
        properties={
            "s3.endpoint": place.url,
            "s3.region": REGION,
            "s3.access-key-id": access_key,
            "s3.secret-access-key": secret_key,
        },
    )
    return table.scan(selected_fields=_COLUMNS).to_arrow()


def _number(name: str, shown: int, truth: int) -> Check:
    return Check(name, f"{shown:,}", f"{truth:,}", shown == truth)
