"""The sparse indexes beside a segment: offset → position, timestamp → offset, aborted data."""
