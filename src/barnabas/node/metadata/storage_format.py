"""`barnabas storage format`, `info` and `random-uuid`, with the options of Kafka's storage tool.

A formatted directory holds `meta.properties` and `bootstrap.checkpoint`; the metadata directory
of a dynamic quorum also a first snapshot with its voters. Apache Kafka 4.3 starts from what is
written here, and this node from what Kafka's tool wrote.
Source: Kafka's StorageTool and Formatter (KIP-631, KIP-778, KIP-853, KIP-900).
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from barnabas.base.disk import Disk
from barnabas.base.errors import ShownError
from barnabas.base.ids import uuid_to_text
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.log.names import META_PROPERTIES_FILE
from barnabas.node.metadata.bootstrap import feature_records, write_bootstrap
from barnabas.node.metadata.ids import RandomSource, is_reserved, random_uuid
from barnabas.node.metadata.meta_properties import (
    MetaProperties,
    MetaPropertiesError,
    check_ensemble,
    read_meta_properties,
    write_meta_properties,
)
from barnabas.node.metadata.metadata_log import METADATA_DIRECTORY, reachable_host
from barnabas.node.metadata.records import MetadataRecord
from barnabas.node.metadata.scram import ScramError, parse_scram
from barnabas.node.raft.snapshot_files import BOOTSTRAP_SNAPSHOT, encode_snapshot
from barnabas.node.raft.voters import VotersError, VoterSet, parse_dynamic_voters
from barnabas.protocol.features import (
    FEATURES,
    KRAFT_VERSION,
    LATEST_METADATA_VERSION,
    METADATA_VERSION,
    MetadataVersion,
    metadata_version_from_level,
    metadata_version_from_text,
    unmet_requirement,
)


class FormatError(ShownError, ValueError):
    """Directories that cannot be formatted as asked; the text says why."""


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """The options of `storage format` beside --config."""

    cluster_id: str
    release_version: str | None = None
    features: Mapping[str, int] | None = None
    ignore_formatted: bool = False
    standalone: bool = False
    initial_controllers: str | None = None
    no_initial_controllers: bool = False
    scram: Sequence[str] = ()
    records: Sequence[MetadataRecord] = ()
    """Further records of a new cluster; no option of the command."""


def random_cluster_id(random: RandomSource) -> str:
    """A new cluster id, as `storage random-uuid` prints it."""
    return uuid_to_text(random_uuid(random))


def log_directories(config: NodeConfig) -> list[str]:
    """Every directory of the node, `metadata.log.dir` included, sorted."""
    return sorted({*config.log_dirs, config.metadata_log_dir})


def format_directories(
    disk: Disk, config: NodeConfig, options: FormatOptions, *, random: RandomSource, now_ms: int
) -> list[str]:
    """Format every log directory of the node that is not formatted yet.

    Returns the lines to print. Raises FormatError, in which case nothing was written, and
    OSError.
    """
    voters = _initial_voters(config, options, random)
    level, levels = _feature_levels(options, is_dynamic=voters is not None)
    records = feature_records(levels)
    if options.scram:
        if not level.has_scram:
            raise FormatError(f"SCRAM is only supported in {METADATA_VERSION} 3.5-IV2 or later.")
        try:
            records += [parse_scram(argument, random) for argument in options.scram]
        except ScramError as error:
            raise FormatError(str(error)) from error
    records += options.records
    empty = _empty_directories(disk, config, options)
    if not empty:
        return ["All of the log directories are already formatted."]
    lines = []
    for directory in empty:
        is_metadata = directory == config.metadata_log_dir
        directory_id = random_uuid(random)
        kind = "data directory"
        if is_metadata and voters is None:
            kind = "metadata directory"
        elif is_metadata and voters is not None:
            kind = "dynamic metadata directory"
            if config.node_id in voters.by_id:
                kind = "dynamic metadata voter directory"
                directory_id = voters.by_id[config.node_id].key.directory_id
        lines.append(f"Formatting {kind} {directory} with {METADATA_VERSION} {level.text}.")
        disk.make_dirs(directory)
        disk.sync_dir(os.path.dirname(directory))
        write_bootstrap(disk, directory, records, now_ms=now_ms)
        if is_metadata and voters is not None:
            _write_voters(disk, directory, voters, levels[KRAFT_VERSION], now_ms)
        # Last, since it is what makes the directory count as formatted.
        write_meta_properties(
            disk, directory, MetaProperties(options.cluster_id, config.node_id, directory_id)
        )
    return lines


def _initial_voters(
    config: NodeConfig, options: FormatOptions, random: RandomSource
) -> VoterSet | None:
    """The voters of a dynamic quorum, or None for a static one or a node that joins later."""
    chosen = [options.standalone, options.no_initial_controllers, bool(options.initial_controllers)]
    if sum(chosen) > 1:
        raise FormatError(
            "Give only one of --standalone, --initial-controllers and --no-initial-controllers."
        )
    is_controller = "controller" in config.process_roles
    if not config.process_roles:
        raise FormatError("process.roles is not set: only nodes of a KRaft cluster are formatted.")
    static = config.get_list("controller.quorum.voters")
    if any(chosen) and static:
        raise FormatError(
            "controller.quorum.voters is set, so the quorum is static; take it out of the "
            "configuration to use --standalone, --initial-controllers or --no-initial-controllers."
        )
    if options.no_initial_controllers:
        return None
    listener = config.controller_listener_names[0] if config.controller_listener_names else ""
    try:
        if options.initial_controllers:
            return _distinct(parse_dynamic_voters(options.initial_controllers, listener))
        if options.standalone:
            if not is_controller:
                raise FormatError("You can only use --standalone on a controller.")
            return parse_dynamic_voters(_standalone_voter(config, listener, random), listener)
    except VotersError as error:
        raise FormatError(str(error)) from error
    if is_controller and not static:
        raise FormatError(
            "Because controller.quorum.voters is not set on this controller, you must specify one "
            "of the following: --standalone, --initial-controllers, or --no-initial-controllers."
        )
    return None


def _distinct(voters: VoterSet) -> VoterSet:
    """Voters with directories and addresses of their own. Raises FormatError.

    Kafka's tool takes what it is given, and its nodes then do not start or vote for each other.
    """
    owners: dict[object, int] = {}
    for node_id, voter in voters.by_id.items():
        directory_id = voter.key.directory_id
        if is_reserved(directory_id):
            raise FormatError(
                f"The directory ID {uuid_to_text(directory_id)} of controller {node_id} is "
                "reserved. Use one that storage random-uuid prints."
            )
        for mark in (directory_id, *((end.host, end.port) for end in voter.endpoints)):
            other = owners.setdefault(mark, node_id)
            if other != node_id:
                what = "directory ID" if mark == directory_id else "address"
                raise FormatError(
                    f"Controllers {other} and {node_id} have the same {what}. Each needs its own."
                )
    return voters


def _standalone_voter(config: NodeConfig, listener: str, random: RandomSource) -> str:
    """This node as the one voter, in the form of --initial-controllers."""
    if not config.advertised_controller_listeners:
        raise FormatError(f"No controller listener {listener!r} was found in listeners.")
    end = config.advertised_controller_listeners[0]
    host = reachable_host(end.host)
    if ":" in host:
        host = f"[{host}]"
    return f"{config.node_id}@{host}:{end.port}:{uuid_to_text(random_uuid(random))}"


def _feature_levels(
    options: FormatOptions, *, is_dynamic: bool
) -> tuple[MetadataVersion, dict[str, int]]:
    """The metadata.version, and the level of every feature. Raises FormatError."""
    given = dict(options.features or {})
    unknown = given.keys() - FEATURES.keys() - {METADATA_VERSION}
    if unknown:
        raise FormatError(
            f"Unsupported feature: {min(unknown)}. Supported features are: "
            f"{', '.join(sorted(FEATURES))}"
        )
    level = LATEST_METADATA_VERSION
    try:
        if METADATA_VERSION in given:
            if options.release_version is not None:
                raise FormatError(
                    f"Use --release-version instead of --feature {METADATA_VERSION}=X to avoid "
                    "ambiguity."
                )
            level = metadata_version_from_level(given[METADATA_VERSION])
        elif options.release_version is not None:
            level = metadata_version_from_text(options.release_version)
    except ValueError as error:
        raise FormatError(str(error)) from error
    levels = {name: feature.default_level(level) for name, feature in FEATURES.items()}
    levels.update(given)
    levels[METADATA_VERSION] = level
    levels[KRAFT_VERSION] = _kraft_version(given.get(KRAFT_VERSION), is_dynamic)
    for name, feature in FEATURES.items():
        if not 0 <= levels[name] <= feature.maximum:
            raise FormatError(
                f"{name}={levels[name]} is not supported: use 0 to {feature.maximum}."
            )
        reason = unmet_requirement(name, levels[name], levels)
        if reason is not None:
            raise FormatError(reason)
    return level, levels


def _kraft_version(given: int | None, is_dynamic: bool) -> int:
    if given is None:
        return 1 if is_dynamic else 0
    if (given > 0) != is_dynamic:
        need = "if" if is_dynamic else "unless"
        raise FormatError(
            f"Cannot set {KRAFT_VERSION} to {given} {need} the voters of a dynamic quorum are "
            f"given. Try removing the --feature flag for {KRAFT_VERSION}."
        )
    return given


def _empty_directories(disk: Disk, config: NodeConfig, options: FormatOptions) -> list[str]:
    """The directories to format. Raises FormatError if some are and should not be."""
    formatted: dict[str, MetaProperties] = {}
    empty = []
    try:
        for directory in log_directories(config):
            properties = read_meta_properties(disk, directory)
            if properties is None:
                empty.append(directory)
            else:
                formatted[directory] = properties
        check_ensemble(formatted, cluster_id=options.cluster_id, node_id=config.node_id)
    except MetaPropertiesError as error:
        raise FormatError(str(error)) from error
    if formatted and not options.ignore_formatted:
        raise FormatError(
            f"Log directory {min(formatted)} is already formatted. Use --ignore-formatted to "
            "ignore this directory and format the others."
        )
    return empty


def _write_voters(
    disk: Disk, directory: str, voters: VoterSet, kraft_version: int, now_ms: int
) -> None:
    metadata_log = f"{directory}/{METADATA_DIRECTORY}"
    disk.make_dirs(metadata_log)
    batches = encode_snapshot(
        [], now_ms=now_ms, last_timestamp_ms=now_ms, kraft_version=kraft_version, voters=voters
    )
    disk.write_atomic(f"{metadata_log}/{BOOTSTRAP_SNAPSHOT.file_name}", b"".join(batches))


@dataclass(frozen=True, slots=True)
class StorageInfo:
    """The result of `storage info`: directories, their properties, and problems."""

    directories: list[str]
    metadata: dict[str, str]
    problems: list[str]

    def lines(self) -> list[str]:
        """As Kafka's tool prints it."""
        lines = []
        if self.directories:
            what = "directory" if len(self.directories) == 1 else "directories"
            lines += [f"Found log {what}:", *(f"  {path}" for path in self.directories), ""]
        if self.metadata:
            values = ", ".join(f"{name}={value}" for name, value in self.metadata.items())
            lines += [f"Found metadata: {{{values}}}", ""]
        if self.problems:
            what = "problem" if len(self.problems) == 1 else "problems"
            lines += [f"Found {what}:", *(f"  {problem}" for problem in self.problems), ""]
        return lines


def storage_info(disk: Disk, config: NodeConfig) -> StorageInfo:
    """Look at every log directory of the node. Raises OSError."""
    directories: list[str] = []
    problems: list[str] = []
    formatted: dict[str, MetaProperties] = {}
    for directory in log_directories(config):
        if not disk.is_dir(directory):
            state = "is not a directory" if disk.exists(directory) else "does not exist"
            problems.append(f"{directory} {state}")
            continue
        directories.append(directory)
        try:
            properties = read_meta_properties(disk, directory)
        except MetaPropertiesError as error:
            problems.append(f"Error loading {directory}/{META_PROPERTIES_FILE}: {error}")
            continue
        if properties is None:
            problems.append(f"{directory} is not formatted.")
        else:
            formatted[directory] = properties
    problems += _mismatches(list(formatted.values()))
    first = next(iter(formatted.values()), None)
    return StorageInfo(directories, {} if first is None else first.to_values(), problems)


def _mismatches(formatted: list[MetaProperties]) -> list[str]:
    problems = []
    for properties in formatted[1:]:
        if properties.cluster_id != formatted[0].cluster_id:
            problems.append("Mismatched cluster IDs between storage directories.")
        elif properties.node_id != formatted[0].node_id:
            problems.append("Mismatched node IDs between storage directories.")
    if formatted and formatted[0].version == 0:
        problems.append(
            "The configuration is for KRaft mode, but the directories are of a legacy cluster."
        )
    return problems
