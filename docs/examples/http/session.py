"""A payment over HTTP with the client that openapi-python-client generates.

CHARTER_URL, CLERK and CONTROLLER: the address of the server, and the keys of two people.
"""
import os

from charter_client import AuthenticatedClient
from charter_client.api.look import get_legal, get_run
from charter_client.api.runs import send_event, start_run
from charter_client.models import AnyEvent, Problem, StartRun


def person(key):
    return AuthenticatedClient(base_url=os.environ["CHARTER_URL"], token=os.environ[key])


clerk, controller = person("CLERK"), person("CONTROLLER")
record = start_run.sync(client=clerk, body=StartRun(charter="payment"))
run = record.run
event = AnyEvent(type_="REQUEST", data={"amount": 250})
# The key makes the request safe to repeat: the event is recorded once.
record = send_event.sync(run, client=clerk, body=event, idempotency_key="request-1")
assert record.state == ["review"], record

# What the controller may do now, and the digest of exactly what is approved.
legal = get_legal.sync(run, client=controller)
approve = next(event for event in legal.events if event.type_ == "APPROVE")
event = AnyEvent(type_="APPROVE", data={"digest": approve.demands["approves"]["digest"]})

refused = send_event.sync(run, client=clerk, body=event)
assert isinstance(refused, Problem) and refused.code == "authority", refused
print("the clerk:", refused.detail)
record = send_event.sync(run, client=controller, body=event)
print("the controller:", record.verdict)
assert get_run.sync(run, client=clerk).status == "done"
