"""Plays the day of the command oapi with the client that openapi-python-client generates: BASE."""

import sys

from vitrine_client import Client
from vitrine_client.api.decisions import decide, get_decision, outcome
from vitrine_client.api.placements import put_placement, stats
from vitrine_client.models import DecideRequest, Feature, FeatureKind, Item, ItemFeatures, Outcome, Placement, PlacementPolicy

with Client(base_url=sys.argv[1]) as client:
    placement = Placement(
        max_size=2,
        features=[Feature(name="price", kind=FeatureKind.NUMBER), Feature(name="brand", kind=FeatureKind.CATEGORY, default="none")],
        policy=PlacementPolicy.from_dict({"name": "ucb-mnl"}),
    )
    put = put_placement.sync_detailed("python", client=client, body=placement)
    assert put.status_code == 201, put
    items = [Item(id=name, features=ItemFeatures.from_dict({"price": price})) for name, price in (("sku1", 1.2), ("sku2", 0.7))]
    for choice in ("sku2", None):
        decided = decide.sync("python", client=client, body=DecideRequest(items=items))
        assert len(decided.assortment) == 2 and decided.outside_probability is not None, decided
        told = outcome.sync_detailed("python", decided.decision_id, client=client, body=Outcome(choice=choice))
        assert told.status_code == 204, told
        decision = get_decision.sync("python", decided.decision_id, client=client)
        assert decision.status == "chosen" and decision.choice == choice, decision
    got = stats.sync("python", client=client)
    assert got.outcomes == 2 and got.by_policy.purchases == 1, got
    refused = stats.sync_detailed("nowhere", client=client)
    assert refused.status_code == 404 and refused.parsed.detail, refused
print("openapi-python-client: put, decide, outcomes, decision, stats and a problem")
