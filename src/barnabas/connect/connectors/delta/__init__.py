"""Records to tables of Delta Lake."""
