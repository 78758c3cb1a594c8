// A certified provider (npm package `oidc-provider`) for the test `oidc::a_certified_provider`: starts,
// logs `bob` in as a browser would (code flow with PKCE), gets a token for a program, and prints the issuer
// and both tokens as a line of JSON. Ends with its standard input.
import { createHash, randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.argv[2]}/`);
const { default: Provider } = await import(pathToFileURL(require.resolve("oidc-provider")));
process.stdin.on("end", () => process.exit()).resume();
const server = createServer();
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const issuer = `http://127.0.0.1:${server.address().port}`;
const page = "http://127.0.0.1:9/cb";
const provider = new Provider(issuer, {
  clients: [
    { client_id: "charter", redirect_uris: [page], token_endpoint_auth_method: "none", application_type: "native" },
    { client_id: "robot", client_secret: "robot", redirect_uris: [], response_types: [], grant_types: ["client_credentials"] },
  ],
  claims: { openid: ["sub", "groups"] },
  conformIdTokenClaims: false,
  findAccount: (_, sub) => ({ accountId: sub, claims: () => ({ sub, groups: ["payment/boss", "a group"] }) }),
  features: {
    devInteractions: { enabled: true },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: () => ({ audience: "charter", scope: "api", accessTokenFormat: "jwt", accessTokenTTL: 300 }),
    },
  },
});
server.on("request", provider.callback());

const cookies = new Map();
async function browse(url, body) {
  const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  const answer = await fetch(url, { redirect: "manual", method: body ? "POST" : "GET", body, headers: { cookie } });
  for (const set of answer.headers.getSetCookie()) {
    const [name, ...value] = set.split(";")[0].split("=");
    cookies.set(name, value.join("="));
  }
  return answer;
}

async function code(challenge) {
  const question = { client_id: "charter", response_type: "code", scope: "openid", redirect_uri: page, state: "s", nonce: "n" };
  let url = new URL(`${issuer}/auth?${new URLSearchParams({ ...question, code_challenge: challenge, code_challenge_method: "S256" })}`);
  let answer = await browse(url);
  for (let step = 0; step < 20; step++) {
    if (answer.status === 200) {
      const html = await answer.text();
      const prompt = /name="prompt" value="(\w+)"/.exec(html)[1];
      url = new URL(/action="([^"]+)"/.exec(html)[1], issuer);
      answer = await browse(url, new URLSearchParams({ prompt, login: "bob", password: "any" }));
      continue;
    }
    url = new URL(answer.headers.get("location"), issuer);
    if (url.searchParams.has("code")) return url.searchParams.get("code");
    answer = await browse(url);
  }
  throw new Error("the login does not end");
}

const ask = async (body, headers = {}) =>
  (await fetch(`${issuer}/token`, { method: "POST", headers, body: new URLSearchParams(body) })).json();
const verifier = randomBytes(32).toString("base64url");
const challenge = createHash("sha256").update(verifier).digest("base64url");
const person = await ask({
  grant_type: "authorization_code", code: await code(challenge), client_id: "charter", redirect_uri: page, code_verifier: verifier,
});
const robot = { authorization: `Basic ${Buffer.from("robot:robot").toString("base64")}` };
const program = await ask({ grant_type: "client_credentials", resource: "https://charter.example", scope: "api" }, robot);
console.log(JSON.stringify({ issuer, person: person.id_token, program: program.access_token }));
