// tier: integration
// What the scripts of deploy/load send is accepted by a real service. Only their programs are missing.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { Config } from '../../src/config/schema.ts'
import { temporaryFolder } from '../support/cli.ts'
import { type TestService, testService } from '../support/service.ts'

const FOLDER = join(import.meta.dirname, '../../../../deploy/load')

const limiters: Config['limiters'] = {
  api: { limits: [{ kind: 'slidingWindow', limit: 1, window: '1h' }], timeoutMs: 9000 },
}

interface Sent {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Replaces `k6`. Answers 200, then 429, then 503. */
const K6 = `
  export const sent = [], counted = [], checked = []
  const statuses = [200, 429, 503]
  export const check = (value, checks) => checked.push(...Object.values(checks).map((passes) => passes(value)))
  export class Counter { add(n) { counted.push(n) } }
  export default {
    expectedStatuses: (...expected) => expected,
    setResponseCallback: () => {},
    post: (url, body, { headers }) => ({ status: statuses[sent.push({ method: 'POST', url, body, headers }) - 1] }),
  }
`

/** Replaces Locust. Prints the request and the row of each response. */
const LOCUST = `
import json

constant_throughput = lambda rate: rate
task = lambda function: function

class Response:
    def __init__(self, status, name):
        self.status_code, self.request_meta, self.outcome = status, {"name": name}, "unset"
    def success(self):
        self.outcome = "success"
    def failure(self, message):
        self.outcome = message
    def __enter__(self):
        return self
    def __exit__(self, *_):
        print(json.dumps({"name": self.request_meta["name"], "outcome": self.outcome}))

class Client:
    statuses = [200, 429, 503]
    def post(self, path, json, headers, name, catch_response):
        print(dumps({"method": "POST", "url": path, "body": dumps(json), "headers": {"content-type": "application/json", **headers}}))
        return Response(self.statuses.pop(0), name)

dumps = json.dumps

class FastHttpUser:
    client = Client()
`

/** Sends a request of a script to a service, twice: the second one is denied. */
async function statusesOf(service: TestService, { method, url, headers, body }: Sent): Promise<number[]> {
  const { pathname } = new URL(url, service.httpUrl)
  const one = await service.ask(pathname, { method, headers, body })
  const two = await service.ask(pathname, { method, headers, body })
  return [one.status, two.status]
}

it('k6.js sends requests that the service accepts', async () => {
  const folder = temporaryFolder()
  onTestFinished(() => folder.remove())
  folder.write('k6.mjs', K6)
  const text = readFileSync(join(FOLDER, 'k6.js'), 'utf8').replaceAll(/from 'k6(\/\w+)?'/g, "from './k6.mjs'")
  const file = folder.write('script.mjs', text)
  await promisify(execFile)(process.execPath, ['--check', file])
  Object.assign(globalThis, { __ENV: { SLIDEGATE_TOKEN: 'a-token' } })
  onTestFinished(() => void Reflect.deleteProperty(globalThis, '__ENV'))
  const { consume, options } = await import(/* @vite-ignore */ pathToFileURL(file).href)
  for (const _ of [200, 429, 503]) consume()
  const k6 = await import(/* @vite-ignore */ pathToFileURL(join(folder.path, 'k6.mjs')).href)
  expect(k6.counted).toEqual([1])
  expect(k6.checked).toEqual([true, true, false])
  expect(options.scenarios.ramp).toMatchObject({ executor: 'ramping-arrival-rate', exec: 'consume' })
  const [sent] = k6.sent as Sent[]
  expect(new URL(sent!.url).origin).toBe('http://127.0.0.1:8080')
  expect(sent!.headers.authorization).toBe('Bearer a-token')
  await using service = await testService({ limiters })
  const { authorization: _, ...headers } = sent!.headers
  expect(await statusesOf(service, { ...sent!, headers })).toEqual([200, 429])
})

it('locustfile.py sends requests that the service accepts', async () => {
  const folder = temporaryFolder()
  onTestFinished(() => folder.remove())
  folder.write('locust.py', LOCUST)
  const file = folder.write('locustfile.py', readFileSync(join(FOLDER, 'locustfile.py')))
  await promisify(execFile)('python3', ['-m', 'py_compile', file])
  const program = 'import locustfile as f; c = f.Caller(); print(c.host); [c.consume() for _ in range(3)]'
  const { SLIDEGATE_TOKEN: _, ...env } = process.env
  const { stdout } = await promisify(execFile)('python3', ['-c', program], { cwd: folder.path, env })
  const [host, ...lines] = stdout.trim().split('\n')
  const printed = lines.map((line) => JSON.parse(line))
  expect(host).toBe('http://127.0.0.1:8080')
  expect(printed.filter(({ outcome }) => outcome !== undefined)).toEqual([
    { name: 'allowed', outcome: 'unset' },
    { name: 'denied', outcome: 'success' },
    { name: 'allowed', outcome: 'HTTP 503' },
  ])
  await using service = await testService({ limiters })
  expect(await statusesOf(service, printed[0])).toEqual([200, 429])
})

describe('plan.jmx', () => {
  let values: readonly (readonly [name: string, value: string])[]

  beforeAll(async () => {
    // Python's parser rejects XML that isn't well-formed.
    const program = `
import json, sys, xml.etree.ElementTree as tree
print(json.dumps([[each.get("name"), each.text or ""] for each in tree.parse(sys.argv[1]).iter() if each.get("name")]))`
    const { stdout } = await promisify(execFile)('python3', ['-c', program, join(FOLDER, 'plan.jmx')])
    values = JSON.parse(stdout)
  })

  /** Returns a value, with the defaults of its properties, and 7 for random numbers. */
  const textOf = (name: string) => {
    const [, value] = values.find(([each]) => each === name)!
    return value.replaceAll(/\$\{__P\(\w+,([^${}]*)\)\}/g, '$1').replaceAll(/\$\{__Random\([\d,]+\)\}/g, '7')
  }

  it('sends a request that the service accepts, to this machine', async () => {
    expect([textOf('HTTPSampler.domain'), textOf('HTTPSampler.port')]).toEqual(['127.0.0.1', '8080'])
    await using service = await testService({ limiters })
    const sent: Sent = {
      method: textOf('HTTPSampler.method'),
      url: textOf('HTTPSampler.path'),
      headers: { [textOf('Header.name')]: textOf('Header.value') },
      body: textOf('Argument.value'),
    }
    expect(JSON.parse(sent.body)).toEqual({ limiter: 'api', key: 'load-7' })
    expect(await statusesOf(service, sent)).toEqual([200, 429])
  })

  it('sends on an open-loop schedule, and counts denials separately', () => {
    expect(textOf('OpenModelThreadGroup.schedule')).toMatch(
      /^(rate\(\d+\/sec\) random_arrivals\(\d+ sec\) )+rate\(\d+\/sec\)$/,
    )
    expect(textOf('script')).toContain("prev.sampleLabel = 'denied'")
  })
})
