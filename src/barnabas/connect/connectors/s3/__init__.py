"""Records to objects of S3, and objects of S3 to records."""
