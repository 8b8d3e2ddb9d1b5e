"""`meta.properties`: whose log directory this is. Source: Kafka's MetaProperties (KIP-631, 858).

Every formatted directory has one, with the cluster's id, the node's, and the directory's own.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.base.config.properties import parse_properties
from barnabas.base.disk import Disk
from barnabas.base.errors import ShownError
from barnabas.base.ids import Uuid, uuid_from_text, uuid_to_text
from barnabas.node.log.names import META_PROPERTIES_FILE
from barnabas.node.metadata.ids import is_reserved


class MetaPropertiesError(ShownError, ValueError):
    """A directory that belongs to something else, or whose file cannot be read."""


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """The file's content. Version 0 (before KRaft) may lack any of the ids."""

    cluster_id: str | None
    node_id: int | None
    directory_id: Uuid | None
    version: int = 1

    def to_values(self) -> dict[str, str]:
        """As the properties of the file, sorted by name."""
        values = {"version": str(self.version)}
        if self.cluster_id is not None:
            values["cluster.id"] = self.cluster_id
        if self.node_id is not None:
            values["node.id" if self.version >= 1 else "broker.id"] = str(self.node_id)
        if self.directory_id is not None:
            values["directory.id"] = uuid_to_text(self.directory_id)
        return dict(sorted(values.items()))


def read_meta_properties(disk: Disk, directory: str) -> MetaProperties | None:
    """Read the file, or None where the directory is not formatted.

    Raises MetaPropertiesError for a file that cannot be what it should, and OSError.
    """
    path = f"{directory}/{META_PROPERTIES_FILE}"
    if not disk.exists(path):
        return None
    try:
        return _parse(parse_properties(disk.read(path).decode("utf-8")))
    except ValueError as error:
        raise MetaPropertiesError(f"{path}: {error}") from error


def write_meta_properties(disk: Disk, directory: str, properties: MetaProperties) -> None:
    """Replace the file and force it to the medium."""
    lines = [f"{name}={_escape(value)}\n" for name, value in properties.to_values().items()]
    disk.write_atomic(f"{directory}/{META_PROPERTIES_FILE}", ("#\n" + "".join(lines)).encode())


def check_ensemble(
    formatted: Mapping[str, MetaProperties], *, cluster_id: str | None, node_id: int
) -> None:
    """Hold the directories of one node against each other and against what is expected.

    Raises MetaPropertiesError naming the first that does not fit, and the way out.
    """
    owners: dict[Uuid, str] = {}
    for directory, properties in sorted(formatted.items()):
        path = f"{directory}/{META_PROPERTIES_FILE}"
        if properties.cluster_id is not None:
            cluster_id = cluster_id or properties.cluster_id
            if properties.cluster_id != cluster_id:
                raise MetaPropertiesError(
                    f"Invalid cluster.id in: {path}. Expected {cluster_id}, but read "
                    f"{properties.cluster_id}"
                )
        if properties.node_id is not None and properties.node_id != node_id:
            raise MetaPropertiesError(
                f"Stored node id {properties.node_id} doesn't match previous node id {node_id} "
                f"in {path}. If you moved your data, make sure your configured node id matches. "
                "If you intend to create a new node, you should remove all data in your data "
                "directories."
            )
        if properties.directory_id is None:
            continue
        if is_reserved(properties.directory_id):
            raise MetaPropertiesError(
                f"Reserved directory ID {uuid_to_text(properties.directory_id)} in {path}"
            )
        other = owners.setdefault(properties.directory_id, directory)
        if other != directory:
            raise MetaPropertiesError(
                f"Duplicate directory ID {uuid_to_text(properties.directory_id)}: both {other} "
                f"and {directory} have it; one is a copy of the other"
            )


def _parse(values: Mapping[str, str]) -> MetaProperties:
    version_text = values.get("version", "0")
    if version_text not in ("0", "1"):
        raise ValueError(f"version {version_text!r} is unknown")
    version = int(version_text)
    node_text = values.get("node.id" if version >= 1 else "broker.id")
    if version >= 1 and (node_text is None or "cluster.id" not in values):
        raise ValueError("cluster.id and node.id must be set")
    directory_text = values.get("directory.id")
    return MetaProperties(
        cluster_id=values.get("cluster.id"),
        node_id=None if node_text is None else int(node_text),
        directory_id=None if directory_text is None else uuid_from_text(directory_text),
        version=version,
    )


def _escape(value: str) -> str:
    """A value as java.util.Properties stores it."""
    out = []
    for index, char in enumerate(value):
        if char in "\\=:#!" or (char == " " and index == 0):
            out.append("\\" + char)
        elif " " <= char <= "~":
            out.append(char)
        else:
            units = char.encode("utf-16-be")
            out += [f"\\u{units[at : at + 2].hex().upper()}" for at in range(0, len(units), 2)]
    return "".join(out)
