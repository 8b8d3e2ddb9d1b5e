"""Records as files: how they are named, cut and written, both in buckets and in directories.

A sink's file holds the records of one topic's partition that fall into one *encoded partition* (a
directory: `partition=0`, `year=2026/month=11`), and its name says the offset of the first.
`partitioners` says into which directory a record goes, `cutting` where files end, `formats` what is
in them, `store` where they are; `sink` and `source` move records.

Source of names, settings and behaviour: Confluent's S3 sink connector and its storage library.
"""
