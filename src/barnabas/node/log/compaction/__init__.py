"""Log compaction: of each key the latest record stays, the others go.

Four steps, each in its own module. `selection` finds the dirtiest log. A worker beside the
event loop (`worker`, or inline under the simulator) reads its dirty part into a map from keys to
their latest offsets (`offset_map`), then rewrites each group of segments without what the map
supersedes (`cleaner`, which asks `retention` what of a batch stays). `swap` puts the new files in
the place of the old ones, on the event loop, by renaming alone. `compactor` drives all this.

What the loader does with files that a crash left behind is in `log.loader.finish_swaps`.
Source: Kafka's LogCleaner, LogCleanerManager and MemoryRecords.filterTo; KIP-58, 98, 354, 534.
"""
