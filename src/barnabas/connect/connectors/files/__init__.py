"""Records to files of a directory, and files of a directory to records."""
