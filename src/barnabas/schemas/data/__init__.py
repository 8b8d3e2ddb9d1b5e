"""The data model of records between two systems: schemas, values, headers. Pure."""
