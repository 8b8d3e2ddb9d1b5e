"""What refuses a whole request of the controller's can be said in each version of its API."""

from __future__ import annotations

import pytest
from protocol_values import sample

from barnabas.node.broker.controller.handlers import FORWARDED
from barnabas.node.broker.controller.versions import fit
from barnabas.node.metadata.controller.refusals import refuse
from barnabas.protocol.apis import APIS, ApiKey
from barnabas.protocol.codec import encode
from barnabas.protocol.errors import ErrorCode


@pytest.mark.parametrize("key", sorted(FORWARDED), ids=lambda key: key.name)
def test_a_refusal_can_be_told(key: ApiKey) -> None:
    api = APIS[key]
    for version in range(api.min_version, api.max_version + 1):
        request = sample(api.request, version)
        refusal = refuse(request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        assert encode(fit(refusal, version), version)
