"""Kinds of changes, by Confluent's names, and a description of each.

A change that the policy calls harmless is not reported, so only kinds that some policy refuses need
a description. The lenient policy (`compatibilityPolicy`) allows more changes of content models.
"""

_HARMFUL = {
    "keyword_added": (
        "MAXIMUM_ADDED MINIMUM_ADDED EXCLUSIVE_MAXIMUM_ADDED EXCLUSIVE_MINIMUM_ADDED"
        " MULTIPLE_OF_ADDED MAX_LENGTH_ADDED MIN_LENGTH_ADDED PATTERN_ADDED"
        " REQUIRED_ATTRIBUTE_ADDED MAX_PROPERTIES_ADDED MIN_PROPERTIES_ADDED"
        " DEPENDENCY_ARRAY_ADDED DEPENDENCY_SCHEMA_ADDED MAX_ITEMS_ADDED MIN_ITEMS_ADDED"
        " MAX_CONTAINS_ADDED MIN_CONTAINS_ADDED UNIQUE_ITEMS_ADDED ADDITIONAL_ITEMS_REMOVED"
        " ADDITIONAL_PROPERTIES_REMOVED UNEVALUATED_PROPERTIES_REMOVED UNEVALUATED_ITEMS_REMOVED"
        " SCHEMA_ADDED"
    ),
    "greater": (
        "MIN_LENGTH_INCREASED MINIMUM_INCREASED EXCLUSIVE_MINIMUM_INCREASED"
        " MIN_PROPERTIES_INCREASED MULTIPLE_OF_EXPANDED MIN_ITEMS_INCREASED"
        " MIN_CONTAINS_INCREASED"
    ),
    "smaller": (
        "MAX_LENGTH_DECREASED MAXIMUM_DECREASED MAX_ITEMS_DECREASED MAX_CONTAINS_DECREASED"
        " EXCLUSIVE_MAXIMUM_DECREASED MAX_PROPERTIES_DECREASED"
    ),
    "different": "PATTERN_CHANGED MULTIPLE_OF_CHANGED DEPENDENCY_ARRAY_CHANGED",
    "fewer": (
        "ADDITIONAL_ITEMS_NARROWED ENUM_ARRAY_NARROWED SUM_TYPE_NARROWED"
        " ADDITIONAL_PROPERTIES_NARROWED UNEVALUATED_PROPERTIES_NARROWED"
        " UNEVALUATED_ITEMS_NARROWED"
    ),
    "more": "DEPENDENCY_ARRAY_EXTENDED PRODUCT_TYPE_EXTENDED NOT_TYPE_EXTENDED",
    "type": (
        "TYPE_CHANGED TYPE_NARROWED COMBINED_TYPE_CHANGED COMBINED_TYPE_SUBSCHEMAS_CHANGED"
        " ENUM_ARRAY_CHANGED"
    ),
    "added_to_open": (
        "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"
        " REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL"
        " OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL ITEM_ADDED_TO_OPEN_CONTENT_MODEL"
    ),
    "required_added": "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
    "removed_from_closed": (
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL"
    ),
    "removed_not_covered": (
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
        " ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
    ),
    "added_not_covered": (
        "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
        " ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
    ),
    "too_large": "COMPARISON_TOO_LARGE",
}

_SENTENCES = {
    "keyword_added": "the reader's schema restricts {path}, the writer's does not",
    "greater": "the value of {path} is greater in the reader's schema than in the writer's",
    "smaller": "the value of {path} is smaller in the reader's schema than in the writer's",
    "different": "the value of {path} differs between the reader's schema and the writer's",
    "fewer": "{path} allows fewer alternatives in the reader's schema than in the writer's",
    "more": "{path} asks for more in the reader's schema than in the writer's",
    "type": "the type of {path} in the reader's schema does not take all that the writer's allows",
    "added_to_open": (
        "the reader's schema restricts {path}, where the writer's open content model allows"
        " anything"
    ),
    "required_added": "the reader's schema requires {path}, which the writer's does not have",
    "removed_from_closed": (
        "the reader's closed content model does not allow {path}, which the writer's schema has"
    ),
    "removed_not_covered": (
        "the writer's schema has {path}, and what the reader's schema says of other properties or"
        " items does not allow it"
    ),
    "added_not_covered": (
        "the reader's schema has {path}, which does not allow all that the writer's schema says of"
        " other properties or items"
    ),
    "too_large": "the two schemas have too many alternatives to compare them all",
}

_WORDS = {kind: group for group, kinds in _HARMFUL.items() for kind in kinds.split()}

HARMFUL_STRICT = frozenset(_WORDS)
HARMFUL_LENIENT = HARMFUL_STRICT - {
    "ADDITIONAL_PROPERTIES_NARROWED",
    "ADDITIONAL_PROPERTIES_REMOVED",
    "UNEVALUATED_PROPERTIES_NARROWED",
    "UNEVALUATED_PROPERTIES_REMOVED",
    "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
    "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
}


def describe(kind: str, path: str) -> str:
    """One sentence about a change of a harmful kind."""
    return _SENTENCES[_WORDS[kind]].format(path=f"'{path}'")
