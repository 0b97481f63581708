// Plays the two SDKs of Azure Personalizer for Node against a service: ENDPOINT KEY KEY-OF-ONE-PLACEMENT PLACEMENT.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const load = createRequire(process.cwd() + "/");
const { default: createClient, isUnexpected } = load("@azure-rest/ai-personalizer");
const { PersonalizerClient } = load("@azure/cognitiveservices-personalizer");
const { ApiKeyCredentials } = load("@azure/ms-rest-js");

const [root, key, keyOfOne, placement] = process.argv.slice(2);
const config = readFileSync(new URL("placement.json", import.meta.url));
const put = await fetch(`${root}/v1/placements/${placement}`, { method: "PUT", body: config, headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" } });
assert.equal(put.status, 201, await put.text());
const actions = [{ id: "pasta", features: [{ taste: "salty" }] }, { id: "ice", features: [{ taste: "sweet" }] }];
const contextFeatures = [{ time: "morning" }];

// isUnexpected looks for the paths of that service at the root of the host.
async function rest(endpoint, key, atRoot) {
  const client = createClient(endpoint, { key }, { allowInsecureConnection: true });
  const expect = (answer, status) => {
    assert.equal(answer.status, status, JSON.stringify(answer.body));
    return answer.body;
  };
  const eventId = randomUUID();
  const answer = await client.path("/rank").post({ body: { actions, contextFeatures, eventId } });
  assert.equal(expect(answer, "201").eventId, eventId);
  assert.equal(answer.body.ranking.length, 2);
  if (atRoot) assert.equal(isUnexpected(answer), false);
  expect(await client.path("/events/{eventId}/reward", eventId).post({ body: { value: 1 } }), "204");

  const slots = [{ id: "hero", baselineAction: "pasta" }, { id: "footer", baselineAction: "ice" }];
  const page = expect(await client.path("/multislot/rank").post({ body: { actions, slots, deferActivation: true } }), "201");
  expect(await client.path("/multislot/events/{eventId}/activate", page.eventId).post(), "204");
  expect(await client.path("/multislot/events/{eventId}/reward", page.eventId).post({ body: { reward: [{ slotId: "hero", value: 1 }] } }), "204");

  const service = expect(await client.path("/configurations/service").get(), "200");
  assert.equal(expect(await client.path("/configurations/service").put({ body: { ...service, explorationPercentage: 0.25 } }), "200").explorationPercentage, 0.25);
  expect(await client.path("/model/properties").get(), "200");
  expect(await client.path("/model").delete(), "204");
  assert.equal(expect(await client.path("/rank").post({ body: { actions: [] } }), "400").error.code, "InvalidRankRequest");
  assert.equal(expect(await client.path("/configurations/policy").get(), "404").error.code, "404");
}

async function former(endpoint, key, _, baseUri) {
  const client = new PersonalizerClient(new ApiKeyCredentials({ inHeader: { "Ocp-Apim-Subscription-Key": key } }), endpoint);
  if (baseUri) client.baseUri = baseUri;
  const answer = await client.rank({ actions, contextFeatures, eventId: randomUUID() });
  assert.equal(answer.ranking.length, 2);
  await client.events.reward(answer.eventId, { value: 1 });
  const later = await client.rank({ actions, deferActivation: true });
  await client.events.activate(later.eventId);
  await assert.rejects(client.rank({ actions: [] }), e => e.statusCode === 400 && e.body.error.code === "InvalidRankRequest");
}

for (const play of [rest, former]) {
  await play(root, key, true);
  await play(root, keyOfOne, true);
  const below = `${root}/v1/placements/${placement}`;
  await play(below, key, false, play === former ? `${below}/personalizer/v1.0` : undefined);
  console.log(`node, ${play.name}: played`);
}
