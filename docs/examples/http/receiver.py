"""Receives webhooks of `charter serve`, and checks who sent them. Needs `pip install standardwebhooks`.

    CHARTER_HOOK_SECRET=whsec_... python receiver.py 8080
"""
import http.server
import os
import sys

from standardwebhooks import Webhook, WebhookVerificationError

webhook = Webhook(os.environ["CHARTER_HOOK_SECRET"])
seen = set()  # a real receiver keeps this with what it does


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            event = webhook.verify(body, dict(self.headers))
        except WebhookVerificationError:
            self.send_error(401)
            return
        # The same message may come twice; it is done once.
        if event["id"] not in seen:
            seen.add(event["id"])
            print(event["type"], event["subject"], event["data"]["seq"], flush=True)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
