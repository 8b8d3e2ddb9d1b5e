"""Records as documents of collections."""
