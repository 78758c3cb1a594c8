"""A small MCP server by hand, over standard streams or (`http`) over HTTP: what a test of a client needs, and some ways to misbehave."""
import http.server
import json
import os
import subprocess
import sys
import time


# The reasons of calls that were cancelled.
cancelled = []


def call(name, arguments):
    if name == "cancelled":
        return {"content": [], "structuredContent": {"reasons": cancelled}}
    if name == "add":
        total = arguments["a"] + arguments["b"]
        return {"content": [{"type": "text", "text": str(total)}], "structuredContent": {"sum": total}, "isError": False}
    if name == "text":
        return {"content": [{"type": "text", "text": "two\nlines"}]}
    if name == "json":
        return {"content": [{"type": "text", "text": '{"n": 1}'}]}
    if name == "environment":
        return {"content": [], "structuredContent": {"names": sorted(os.environ), "here": sorted(os.listdir("."))}}
    if name == "huge":
        return {"content": [{"type": "text", "text": "x" * (2 << 20)}]}
    if name == "leave":
        child = subprocess.Popen(["sleep", "60"], start_new_session=True)
        return {"content": [], "structuredContent": {"pid": child.pid}}
    if name == "die":
        sys.exit(3)
    if name == "hang":
        time.sleep(60)
    return {"content": [{"type": "text", "text": f"no tool {name}"}], "isError": True}


def answer(message):
    method, ident = message.get("method"), message.get("id")
    if method == "initialize":
        result = {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "by hand", "version": "1"},
        }
    elif method == "tools/call":
        name = message["params"]["name"]
        if name == "unknown":
            error = {"code": -32602, "message": "Unknown tool: unknown"}
            return {"jsonrpc": "2.0", "id": ident, "error": error}
        result = call(name, message["params"].get("arguments", {}))
        if name == "key":
            result = {"content": [], "structuredContent": {"key": message["params"]["_meta"]["charter/effect"]}}
    else:
        result = {}
    return {"jsonrpc": "2.0", "id": ident, "result": result}


class Http(http.server.BaseHTTPRequestHandler):
    """Sessions, a key, answers as JSON and, for calls, as a stream that stays open for a while."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def say(self, status, kind, body, **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_DELETE(self):
        self.say(200, "text/plain", b"")

    def do_GET(self):
        self.say(405, "text/plain", b"")

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers.get("Authorization") != "Bearer sesame-sesame":
            self.say(401, "text/plain", b"not with " + str(self.headers.get("Authorization")).encode())
            return
        if message.get("method") == "initialize":
            self.say(200, "application/json", json.dumps(answer(message)).encode(), Mcp_Session_Id="s1")
            return
        if self.headers.get("Mcp-Session-Id") != "s1":
            self.say(400, "text/plain", b"no session")
            return
        if "id" not in message:
            if message["method"] == "notifications/cancelled":
                cancelled.append(message["params"]["reason"])
            self.say(202, "text/plain", b"")
            return
        if message["params"].get("name") == "busy":
            self.say(503, "text/plain", b"busy")
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        progress = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "soon"}}
        for said in progress, None if message["params"].get("name") == "cut" else answer(message):
            if said is None:
                self.close_connection = True
                return
            self.wfile.write(f"event: message\ndata: {json.dumps(said)}\n\n".encode())
        self.wfile.flush()
        time.sleep(1)
        self.close_connection = True


if sys.argv[1:] == ["http"]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Http)
    print(server.server_port, flush=True)
    server.serve_forever()
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        print(json.dumps(answer(message)), flush=True)
