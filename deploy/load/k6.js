// An open-loop ramp of requests to the consume endpoint: k6 run deploy/load/k6.js
import { check } from 'k6'
import http from 'k6/http'
import { Counter } from 'k6/metrics'

const { SLIDEGATE_URL = 'http://127.0.0.1:8080', SLIDEGATE_TOKEN, LIMITER = 'api', KEYS = '100' } = __ENV

const url = `${SLIDEGATE_URL}/v1/consume`
const headers = {
  'content-type': 'application/json',
  ...(SLIDEGATE_TOKEN && { authorization: `Bearer ${SLIDEGATE_TOKEN}` }),
}

/** Denials. They aren't errors, so `http_req_failed` doesn't count them. */
const denied = new Counter('denied')
http.setResponseCallback(http.expectedStatuses(200, 429))

export const options = {
  scenarios: {
    ramp: {
      exec: 'consume',
      executor: 'ramping-arrival-rate',
      // Iterations per second. `dropped_iterations` counts those for which no virtual user was free.
      timeUnit: '1s',
      startRate: 100,
      stages: [
        { duration: '10s', target: 100 },
        { duration: '30s', target: 5000 },
      ],
      preAllocatedVUs: 100,
      maxVUs: 1000,
    },
  },
  thresholds: { http_req_failed: ['rate<0.01'] },
}

export function consume() {
  const key = `load-${Math.floor(Math.random() * KEYS)}`
  const { status } = http.post(url, JSON.stringify({ limiter: LIMITER, key }), { headers })
  check(status, { 'got a decision': () => status === 200 || status === 429 })
  if (status === 429) denied.add(1)
}
