// A payment over HTTP with types that openapi-typescript generates, and openapi-fetch.
//
// CHARTER_URL, CLERK and CONTROLLER: the address of the server, and the keys of two people.
import createClient from "openapi-fetch";
import type { paths } from "./charter-api";

function person(key: string) {
  const headers = { Authorization: `Bearer ${process.env[key]}` };
  return createClient<paths>({ baseUrl: process.env.CHARTER_URL, headers });
}

function sure<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("no answer");
  return value;
}

async function main() {
  const clerk = person("CLERK");
  const controller = person("CONTROLLER");
  const started = sure((await clerk.POST("/v1/runs", { body: { charter: "payment" } })).data);
  const path = { run: started.run };
  // The key makes the request safe to repeat: the event is recorded once.
  const requested = await clerk.POST("/v1/runs/{run}/events", {
    params: { path, header: { "Idempotency-Key": "request-1" } },
    body: { type: "REQUEST", data: { amount: 250 } },
  });
  if (sure(requested.data).state[0] !== "review") throw new Error(JSON.stringify(requested.error));

  // What the controller may do now, and the digest of exactly what is approved.
  const legal = sure((await controller.GET("/v1/runs/{run}/legal", { params: { path } })).data);
  const approve = sure(legal.events.find((event) => event.type === "APPROVE"));
  const { digest } = (approve.demands as { approves: { digest: string } }).approves;
  const body = { type: "APPROVE", data: { digest } } as const;

  const refused = await clerk.POST("/v1/runs/{run}/events", { params: { path }, body });
  if (refused.error?.code !== "authority") throw new Error(JSON.stringify(refused));
  console.log("the clerk:", refused.error.detail);
  const approved = await controller.POST("/v1/runs/{run}/events", { params: { path }, body });
  console.log("the controller:", sure(approved.data).verdict);
  const run = sure((await clerk.GET("/v1/runs/{run}", { params: { path } })).data);
  if (run.status !== "done") throw new Error(run.status ?? "");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
