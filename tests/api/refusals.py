"""A check for schemathesis: a body that fits the description is refused only with a sentence that stands in it."""

import json

import schemathesis


@schemathesis.check
def refused_as_described(ctx, response, case):
    if response.status_code != 400 or not case.meta.generation.mode.is_positive:
        return
    words = response.json()["error"]["message"]
    assert json.dumps(words) in json.dumps(case.operation.schema.raw_schema), f"No word of that: {words}"
