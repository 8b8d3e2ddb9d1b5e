"""The schema registry beside Karapace: each in a process of its own, over the same broker."""
