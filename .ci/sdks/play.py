"""Plays the two SDKs of Azure Personalizer for Python against a service: ENDPOINT KEY KEY-OF-ONE-PLACEMENT PLACEMENT."""

import pathlib
import sys
import urllib.request
import uuid

from azure.ai.personalizer import PersonalizerAdministrationClient, PersonalizerClient
from azure.cognitiveservices.personalizer import PersonalizerClient as FormerClient
from azure.cognitiveservices.personalizer.models import ErrorResponseException, RankableAction, RankRequest
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from msrest.authentication import CognitiveServicesCredentials

root, key, key_of_one, placement = sys.argv[1:]
with open(pathlib.Path(__file__).with_name("placement.json"), "rb") as config:
    request = urllib.request.Request(f"{root}/v1/placements/{placement}", config.read(), {"Authorization": "Bearer " + key, "Content-Type": "application/json"}, method="PUT")
    assert urllib.request.urlopen(request).status == 201
actions = [{"id": "pasta", "features": [{"taste": "salty"}]}, {"id": "ice", "features": [{"taste": "sweet"}]}]


def newest(endpoint, key):
    client = PersonalizerClient(endpoint, AzureKeyCredential(key))
    event = str(uuid.uuid4())
    answer = client.rank({"actions": actions, "contextFeatures": [{"time": "morning"}], "eventId": event})
    assert answer["eventId"] == event and len(answer["ranking"]) == 2, answer
    assert abs(sum(a["probability"] for a in answer["ranking"]) - 1) < 1e-9, answer
    client.reward(event, {"value": 1.0})

    answer = client.rank({"actions": actions, "deferActivation": True})
    client.activate(answer["eventId"])

    slots = [{"id": "hero", "baselineAction": "pasta"}, {"id": "footer", "baselineAction": "ice"}]
    answer = client.rank_multi_slot({"actions": actions, "slots": slots, "deferActivation": True})
    assert {s["rewardActionId"] for s in answer["slots"]} == {"pasta", "ice"}, answer
    client.activate_multi_slot(answer["eventId"])
    client.reward_multi_slot(answer["eventId"], {"reward": [{"slotId": "hero", "value": 1.0}]})

    admin = PersonalizerAdministrationClient(endpoint, AzureKeyCredential(key))
    service = admin.get_service_configuration()
    service["rewardWaitTime"], service["explorationPercentage"] = "PT15M", 0.3
    service = admin.update_service_configuration(service)
    assert service["rewardWaitTime"] == "PT15M" and service["explorationPercentage"] == 0.3, service
    assert admin.get_model_properties()["lastModifiedTime"] > "2026"
    admin.reset_model()
    for call, status, code in [
        (lambda: client.rank({"actions": []}), 400, "InvalidRankRequest"),
        (lambda: admin.get_policy(), 404, "404"),
    ]:
        try:
            call()
        except HttpResponseError as e:
            assert e.status_code == status and e.error.code == code, e
            assert isinstance(e, ResourceNotFoundError) == (status == 404), e
        else:
            raise AssertionError("it was not refused")


def former(endpoint, key):
    client = FormerClient(endpoint, CognitiveServicesCredentials(key))
    listed = [RankableAction(id=a["id"], features=a["features"]) for a in actions]
    answer = client.rank(RankRequest(actions=listed, context_features=[{"time": "morning"}], event_id=str(uuid.uuid4())))
    assert len(answer.ranking) == 2 and answer.reward_action_id in ("pasta", "ice"), answer
    client.events.reward(answer.event_id, 1.0)
    answer = client.rank(RankRequest(actions=listed, defer_activation=True))
    client.events.activate(answer.event_id)
    try:
        client.rank(RankRequest(actions=[]))
    except ErrorResponseException as e:
        assert e.error.error.code == "InvalidRankRequest", e
    else:
        raise AssertionError("it was not refused")


for play in (newest, former):
    play(root, key)
    play(root + "/", key_of_one)
    play(f"{root}/v1/placements/{placement}", key)
    print(f"python, {play.__name__}: played")
