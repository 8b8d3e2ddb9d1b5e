"""What records are made of between two systems: schemas, values, headers. Pure."""
