"""A model that is a list: answers with the next tool call, then with a text. Speaks the protocols of Anthropic, OpenAI
and Google, on the loopback only. Standard library only."""
import http.server
import json
import threading


class Model:
    """`calls` are (tool, arguments), or lists of them for one answer (Anthropic only); which one is next follows from the results that a request has."""

    def __init__(self, calls):
        self.calls, self.requests, self.paths = calls, [], []
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                model.paths.append("GET " + self.path)
                self.reply(json.dumps({"data": [], "models": [], "object": "list"}))

            def do_POST(self):
                model.paths.append("POST " + self.path)
                size = int(self.headers.get("content-length") or 0)
                raw = self.rfile.read(size)
                if self.headers.get("content-encoding") == "gzip":
                    import gzip
                    raw = gzip.decompress(raw)
                try:
                    body = json.loads(raw or b"{}")
                except ValueError:
                    return self.reply("{}")
                path = self.path.split("?")[0]
                if path.endswith("/count_tokens") or path.endswith(":countTokens"):
                    return self.reply(json.dumps({"input_tokens": 1, "totalTokens": 1}))
                for end, answer in PROTOCOLS.items():
                    if path.endswith(end):
                        model.requests.append(body)
                        return self.reply(*answer(model, body))
                self.reply("{}")

            def reply(self, text, kind="application/json"):
                data = text.encode()
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def next(self, results, has_tools):
        """The next call; None if only a text is left to say."""
        return self.calls[results] if has_tools and results < len(self.calls) else None

    def heard(self):
        """Everything that clients have told the model."""
        return json.dumps(self.requests)

    def close(self):
        self.server.shutdown()


def sse(events, named=False):
    lines = []
    for event in events:
        if named:
            lines.append(f"event: {event['type']}")
        lines.append(f"data: {event if isinstance(event, str) else json.dumps(event)}\n")
    return "\n".join(lines) + "\n", "text/event-stream"


def count(value, test):
    """How many objects in a value pass a test."""
    if isinstance(value, dict):
        return int(test(value)) + sum(count(inner, test) for inner in value.values())
    return sum(count(inner, test) for inner in value) if isinstance(value, list) else 0


def anthropic(model, body):
    results = count(body.get("messages"), lambda o: o.get("type") == "tool_result")
    call = model.next(results, body.get("tools"))
    calls = call if isinstance(call, list) else [call] if call else []
    blocks = [{"type": "tool_use", "id": f"toolu_{results:04}_{n}", "name": name, "input": arguments}
              for n, (name, arguments) in enumerate(calls)] or [{"type": "text", "text": "done"}]
    stop = "tool_use" if call else "end_turn"
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model", "m"), "content": [],
               "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    if not body.get("stream"):
        return (json.dumps({**message, "content": blocks, "stop_reason": stop}),)
    parts = []
    for n, block in enumerate(blocks):
        begin, delta = {**block, "text": ""}, {"type": "text_delta", "text": "done"}
        if call:
            begin, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        parts += [{"type": "content_block_start", "index": n, "content_block": begin},
                  {"type": "content_block_delta", "index": n, "delta": delta}, {"type": "content_block_stop", "index": n}]
    return sse([
        {"type": "message_start", "message": message}, *parts,
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ], named=True)


def responses(model, body):
    outputs = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
    results = count(body.get("input"), lambda o: o.get("type") in outputs)
    call = model.next(results, body.get("tools"))
    item = {"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]}
    if call:
        item = {"type": "function_call", "id": f"fc_{results}", "call_id": f"call_{results}", "name": call[0],
                "arguments": json.dumps(call[1])}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    response = {"id": f"resp_{results}", "object": "response", "status": "completed", "output": [item], "usage": usage}
    return sse([
        {"type": "response.created", "response": {"id": response["id"]}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    ], named=True)


def chat(model, body):
    results = count(body.get("messages"), lambda o: o.get("role") == "tool")
    call = model.next(results, body.get("tools"))
    delta, finish = {"role": "assistant", "content": "done"}, "stop"
    if call:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        delta = {"role": "assistant", "content": None, "tool_calls": [
            {"index": 0, "id": f"call_{results}", "type": "function", "function": function}]}
        finish = "tool_calls"
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    chunk = {"id": "c1", "object": "chat.completion.chunk", "created": 0, "model": body.get("model", "m")}
    if not body.get("stream"):
        choice = {"index": 0, "message": delta, "finish_reason": finish}
        return (json.dumps({**chunk, "object": "chat.completion", "choices": [choice], "usage": usage}),)
    return sse([
        {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage},
        "[DONE]",
    ])


def gemini(model, body, stream=True):
    results = count(body.get("contents"), lambda o: "functionResponse" in o)
    call = model.next(results, body.get("tools"))
    part = {"functionCall": {"name": call[0], "args": call[1]}} if call else {"text": "done"}
    answer = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
              "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}}
    return sse([answer]) if stream else (json.dumps(answer),)


PROTOCOLS = {
    "/messages": anthropic,
    "/responses": responses,
    "/chat/completions": chat,
    ":streamGenerateContent": gemini,
    ":generateContent": lambda model, body: gemini(model, body, stream=False),
}
