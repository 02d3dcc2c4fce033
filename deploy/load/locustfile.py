"""Requests to the consume endpoint: locust -f deploy/load/locustfile.py --headless -u 100 -r 10 -t 30s

Each user sends up to ten requests per second. A user waits for the response to its request, so this isn't open loop: if the
service is slow, the rate drops.
"""

import os
import random

from locust import FastHttpUser, constant_throughput, task

LIMITER = os.environ.get("LIMITER", "api")
KEYS = int(os.environ.get("KEYS", "100"))
TOKEN = os.environ.get("SLIDEGATE_TOKEN")
HEADERS = {"authorization": f"Bearer {TOKEN}"} if TOKEN else {}


class Caller(FastHttpUser):
    host = os.environ.get("SLIDEGATE_URL", "http://127.0.0.1:8080")
    wait_time = constant_throughput(10)

    @task
    def consume(self):
        body = {"limiter": LIMITER, "key": f"load-{random.randrange(KEYS)}"}
        with self.client.post(
            "/v1/consume", json=body, headers=HEADERS, name="allowed", catch_response=True
        ) as response:
            if response.status_code == 429:
                # A denial isn't a failure. It has its own row in the statistics.
                response.request_meta["name"] = "denied"
                response.success()
            elif response.status_code != 200:
                response.failure(f"HTTP {response.status_code}")
