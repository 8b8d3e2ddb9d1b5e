"""Comparing the replicas of a partition on disk, batch by batch, after a cluster has ended."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from barnabas.protocol.records.batch import check_crc, iterate_headers


def check_replicas_agree(data_directories: Iterable[Path], topic: str) -> int:
    """Each offset has the same batch on every replica that has it; returns how many were compared.

    Fails where two differ. Logs may be of different lengths: a replica may lack the end.
    """
    compared = 0
    known: dict[tuple[str, int], tuple[int, int, int, Path]] = {}
    for data in data_directories:
        for directory in sorted(data.glob(f"{topic}-*")):
            for base_offset, *content in _batches(directory):
                mine: Any = (*content, directory)
                theirs = known.setdefault((directory.name, base_offset), mine)
                assert theirs[:3] == mine[:3], (
                    f"{directory.name} differs at offset {base_offset}: "
                    f"{theirs[3]} has {theirs[:3]}, {directory} has {mine[:3]}"
                )
                compared += theirs is not mine
    return compared


def _batches(directory: Path) -> Iterable[tuple[int, int, int, int]]:
    """(base offset, last offset, leader epoch, CRC) of each batch; fails where one is damaged."""
    next_offset = -1
    for segment in sorted(directory.glob("*.log")):
        data = segment.read_bytes()
        for position, header in iterate_headers(data, allow_partial_tail=True):
            assert check_crc(data, position, header), f"{segment} is damaged at {position}"
            assert next_offset in (-1, header.base_offset), (
                f"{segment} goes from {next_offset} to {header.base_offset}"
            )
            next_offset = header.next_offset
            epoch = header.partition_leader_epoch
            yield header.base_offset, header.last_offset, epoch, header.crc
