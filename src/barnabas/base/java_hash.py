"""Java's string hash and integer arithmetic, on which Kafka's placement depends. Source:
String.hashCode, Utils.abs.
"""

INT32_MIN = -(1 << 31)


def java_hash(text: str) -> int:
    """`String.hashCode()`: over UTF-16 units, as a signed 32-bit number."""
    value = 0
    data = text.encode("utf-16-le", "surrogatepass")
    for position in range(0, len(data), 2):
        value = (31 * value + data[position] + (data[position + 1] << 8)) & 0xFFFFFFFF
    return as_int32(value)


def as_int32(value: int) -> int:
    """What is left of `value` in a Java int, which wraps around."""
    return ((value - INT32_MIN) & 0xFFFFFFFF) + INT32_MIN


def java_abs(value: int) -> int:
    """Kafka's Utils.abs: the smallest int, which has no absolute value, counts as 0."""
    return 0 if value == INT32_MIN else abs(value)
