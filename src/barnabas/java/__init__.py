"""Java's behaviour, imitated exactly: time, numbers, texts, regular expressions and hashes."""
