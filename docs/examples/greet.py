import json
import sys

print(json.dumps({"text": f"Hello, {json.load(sys.stdin)['name']}!"}))
