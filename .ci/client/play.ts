// Plays the day of the command oapi with the types that openapi-typescript generates, which openapi-fetch calls by: BASE.
import createClient from "openapi-fetch";
import type { components, paths } from "./shop";

declare const process: { argv: string[] };

function check(ok: boolean, what: string, got: unknown): asserts ok {
  if (!ok) throw new Error(`${what}: ${JSON.stringify(got)}`);
}

async function main() {
  const client = createClient<paths>({ baseUrl: process.argv[2] });
  const body: components["schemas"]["Placement"] = {
    max_size: 2,
    features: [{ name: "price", kind: "number" }, { name: "brand", kind: "category", default: "none" }],
    policy: { name: "ucb-mnl" },
  };
  const put = await client.PUT("/v1/placements/{name}", { params: { path: { name: "typescript" } }, body });
  check(put.response.status === 201, "put", put);
  const items: components["schemas"]["Item"][] = [{ id: "sku1", features: { price: 1.2 } }, { id: "sku2", features: { price: 0.7 } }];
  for (const choice of ["sku2", null]) {
    const { data: decided, error } = await client.POST("/v1/placements/{name}/decisions", { params: { path: { name: "typescript" } }, body: { items } });
    check(decided?.assortment.length === 2 && decided.outside_probability !== null, "decide", decided ?? error);
    const path = { name: "typescript", id: decided.decision_id };
    const outcome = await client.POST("/v1/placements/{name}/decisions/{id}/outcome", { params: { path }, body: { choice } });
    check(outcome.response.status === 204, "outcome", outcome);
    const { data: decision } = await client.GET("/v1/placements/{name}/decisions/{id}", { params: { path } });
    check(decision?.status === "chosen" && decision.choice === choice, "the decision", decision);
  }
  const { data: stats } = await client.GET("/v1/placements/{name}/stats", { params: { path: { name: "typescript" } } });
  check(stats?.outcomes === 2 && stats.by_policy.purchases === 1, "stats", stats);
  const { error, response } = await client.GET("/v1/placements/{name}/stats", { params: { path: { name: "nowhere" } } });
  check(response.status === 404 && !!error?.detail, "a problem", error);
  console.log("openapi-typescript: put, decide, outcomes, decision, stats and a problem");
}

main().catch((e) => {
  console.error(`openapi-typescript: ${e.message}`);
  (process as unknown as { exitCode: number }).exitCode = 1;
});
