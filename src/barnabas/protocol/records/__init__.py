"""Record batches: the bytes that clients write, the log keeps and consumers read.

`batch` reads and patches headers, `records` reads, writes and validates what is inside,
`compression` knows the five codecs and `control` the batches that brokers write themselves.
"""
