"""Schema validation: records must name a schema that the registry has under their subject."""
