"""All cases."""

from support.required_rights import of_cluster, of_groups, of_security, of_topics

CASES = (*of_topics.CASES, *of_groups.CASES, *of_cluster.CASES, *of_security.CASES)
