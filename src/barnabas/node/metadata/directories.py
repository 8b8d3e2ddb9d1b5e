"""The log directories of a node that starts: whose they are, and which id each has."""

from dataclasses import dataclass, replace

from barnabas.base.disk import Disk
from barnabas.base.ids import Uuid
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.log.names import META_PROPERTIES_FILE
from barnabas.node.metadata.ids import RandomSource, random_uuid
from barnabas.node.metadata.meta_properties import (
    MetaProperties,
    MetaPropertiesError,
    check_ensemble,
    read_meta_properties,
    write_meta_properties,
)
from barnabas.node.metadata.storage_format import log_directories


@dataclass(frozen=True, slots=True)
class NodeDirectories:
    """The content of a node's `meta.properties`."""

    cluster_id: str
    ids: dict[str, Uuid]
    """By directory, those that could be read."""
    failed: dict[str, OSError]
    """Directories whose disk does not answer; the node runs without them."""


def load_directories(disk: Disk, config: NodeConfig, random: RandomSource) -> NodeDirectories:
    """Read and check every directory; one without an id (before KIP-858) gets one.

    Raises MetaPropertiesError if one is not formatted or belongs to another node or cluster,
    and OSError if the metadata directory cannot be read.
    """
    formatted: dict[str, MetaProperties] = {}
    failed: dict[str, OSError] = {}
    metadata = config.metadata_log_dir
    for directory in log_directories(config):
        try:
            properties = read_meta_properties(disk, directory)
        except OSError as error:
            if directory == metadata:
                raise
            failed[directory] = error
            continue
        if properties is not None and (properties.cluster_id is None or properties.node_id is None):
            raise MetaPropertiesError(
                f"{directory}/{META_PROPERTIES_FILE} does not name cluster.id and node.id; "
                "restore it, as it is in the node's other directories and on other nodes but for "
                "node.id and directory.id"
            )
        if properties is None:
            raise MetaPropertiesError(
                f"{directory} is not formatted. Run `barnabas storage format --config FILE "
                "--cluster-id ID` first (`barnabas storage random-uuid` prints an id); with "
                "--ignore-formatted it leaves formatted directories as they are."
            )
        formatted[directory] = properties
    check_ensemble(formatted, cluster_id=None, node_id=config.node_id)
    for directory, properties in formatted.items():
        if properties.directory_id is None:
            formatted[directory] = replace(properties, directory_id=random_uuid(random))
            write_meta_properties(disk, directory, formatted[directory])
    cluster_id = formatted[metadata].cluster_id
    assert cluster_id is not None
    ids = {path: props.directory_id for path, props in formatted.items() if props.directory_id}
    return NodeDirectories(cluster_id, ids, failed)
