// A proxy that adds the key in KEY to each request: the conformance suite cannot send one. Everything else, also Host and
// Origin, passes as it is. `node mcp-key.mjs PORT SERVER_PORT`
import http from "node:http";

const [port, server] = process.argv.slice(2).map(Number);
http.createServer((request, response) => {
  const headers = { ...request.headers, authorization: `Bearer ${process.env.KEY}` };
  const { method, url: path } = request;
  const passed = http.request({ host: "127.0.0.1", port: server, method, path, headers, setHost: false }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  passed.on("error", () => response.destroy());
  response.on("close", () => passed.destroy());
  request.pipe(passed);
}).listen(port, "127.0.0.1", () => console.log("ready"));
