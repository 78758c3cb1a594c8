"""A small MCP server over standard streams, by hand: what a test of a client needs, and some ways to misbehave."""
import json
import os
import sys
import time


def call(name, arguments):
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
    if name == "die":
        sys.exit(3)
    if name == "hang":
        time.sleep(60)
    return {"content": [{"type": "text", "text": f"no tool {name}"}], "isError": True}


for line in sys.stdin:
    message = json.loads(line)
    method, ident = message.get("method"), message.get("id")
    if ident is None:
        continue
    if method == "initialize":
        result = {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "by hand", "version": "1"},
        }
    elif method == "tools/call":
        result = call(message["params"]["name"], message["params"].get("arguments", {}))
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": ident, "result": result}), flush=True)
