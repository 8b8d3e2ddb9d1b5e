"""Puts a worker together from its settings: engine, store, herder."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module

from confluent_kafka import KafkaException

from barnabas.base.tls.contexts import PropertyKeys
from barnabas.connect.config.client_overrides import override_policy
from barnabas.connect.config.common import CONVERTERS
from barnabas.connect.config.validation import WorkerRules
from barnabas.connect.tasks.base import TaskEngine
from barnabas.connect.tasks.clients import admin_settings
from barnabas.connect.tasks.local import LocalEngine
from barnabas.connect.worker.herder import Herder
from barnabas.connect.worker.memory_store import MemoryStore
from barnabas.connect.worker.offset_file import OffsetFile
from barnabas.connect.worker.restarts import read_policy
from barnabas.connect.worker.running import Resolve, Worker
from barnabas.connect.worker.settings import (
    OFFSET_FILE,
    check_settings,
    engine_kind,
    is_distributed,
)
from barnabas.connect.worker.standalone import StandaloneHerder
from barnabas.kafka.admin import Admin
from barnabas.kafka.bootstrap import UnreachableError, first_reachable
from barnabas.kafka.security import Security
from barnabas.schemas.data.errors import ConnectError

_CLUSTER_S = 60.0
# Imported when they are used: Spark takes its time.
_SPARK = "barnabas.connect.tasks.spark"
_DISTRIBUTED = "barnabas.connect.worker.distributed.start"


class NoClusterError(ConnectError):
    """The Kafka cluster cannot be reached."""


def make_herder(
    settings: Mapping[str, str],
    url: str,
    *,
    resolve: Resolve = dict,
    verify: ssl.SSLContext | bool = True,
) -> Herder:
    """Return the herder that the settings ask for, not yet started. Raises ConnectError.

    `url` is where this worker's REST interface is reached, `verify` what others' certificates are
    checked with.
    """
    worker_id = url.partition("://")[2]
    policy = override_policy(settings)
    cluster_id = cluster_of(settings)
    parsed = check_settings(settings)
    converters = {name: parsed[name] for name in CONVERTERS}
    if is_distributed(settings):
        herder: Herder = import_module(_DISTRIBUTED).distributed_herder(
            settings,
            make_engine(settings),
            url,
            worker_id=worker_id,
            resolve=resolve,
            policy=policy,
            verify=verify,
        )
        herder.cluster_id = cluster_id
        herder.rules = replace(herder.rules, converters=converters, engine=engine_kind(settings))
        return herder
    read_policy(settings, {})
    file = OffsetFile(settings[OFFSET_FILE])
    file.load()
    worker = Worker(worker_id, settings, make_engine(settings), MemoryStore(file), resolve=resolve)
    rules = WorkerRules(policy=policy, converters=converters, engine=engine_kind(settings))
    return StandaloneHerder(worker, rules, cluster_id)


def make_engine(settings: Mapping[str, str]) -> TaskEngine:
    """Return the engine that runs tasks. Spark starts with the first of them."""
    if engine_kind(settings) == "local":
        return LocalEngine()
    made: TaskEngine = import_module(_SPARK).spark_engine(settings)
    return made


def cluster_of(settings: Mapping[str, str]) -> str | None:
    """Return the id of the Kafka cluster. Raises NoClusterError, at once if nothing listens."""
    given = admin_settings({}, settings)
    try:
        security = Security(PropertyKeys(given))
        first_reachable(str(given["bootstrap.servers"]), security=security)
        cluster_id: str | None = Admin(given, _CLUSTER_S).metadata().cluster_id
        return cluster_id
    except UnreachableError as error:
        raise NoClusterError(str(error)) from error
    except KafkaException as error:
        raise NoClusterError(
            f"no broker answers at {settings.get('bootstrap.servers')}: {error.args[0].str()}"
        ) from error
