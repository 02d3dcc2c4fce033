// tier: system
import { copyFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { ROOT } from '../../../slidegate/test/docs/markdown.ts'
import { freePort, startRedis } from '../../../slidegate/test/support/redis-server.ts'
import { until } from '../../../slidegate/test/support/until.ts'
import { deployed, replaced } from '../gateway/support/programs.ts'
import { type Alertmanager, startAlertmanager } from './alertmanager.ts'
import {
  anyOf,
  type Dashboard,
  filled,
  labelAsked,
  type Question,
  questionsOf,
  written,
} from './dashboards.ts'
import { type Program, startProgram } from './program.ts'
import { startTraffic, TOKEN, watchedAlone, watchedService } from './watched.ts'

// A Prometheus with the example configuration scrapes two services on the same Redis and one with a memory store, while
// everything that the dashboards show happens.

const DEADLINE_MS = 45_000
/** Values for scrapes every two seconds. A scrape may take as long while Redis is down. */
const SCALE = { __rate_interval: '15s', __interval: '2s', __range: '1m' }

const opened: AsyncDisposable[] = []
afterAll(async () => {
  for (const each of opened.reverse()) await each[Symbol.asyncDispose]()
})
function open<Opened extends AsyncDisposable>(each: Opened): Opened {
  opened.push(each)
  return each
}

let prometheus: Program
let alertmanager: Alertmanager
let targets: string[]
/** An address without a listener. */
let gone: string
const beganAtMs = Date.now()

interface Found {
  readonly data: { readonly result: readonly Series[] }
}
interface Series {
  readonly metric: Readonly<Record<string, string>>
  readonly value?: readonly [number, string]
  readonly values?: readonly (readonly [number, string])[]
}

async function now(query: string): Promise<readonly Series[]> {
  return (await prometheus.get<Found>('/api/v1/query', { query })).data.result
}

/** Evaluates a query from the start. */
async function overTime(query: string): Promise<readonly Series[]> {
  const range = { start: `${beganAtMs / 1000}`, end: `${Date.now() / 1000}`, step: '1' }
  return (await prometheus.get<Found>('/api/v1/query_range', { query, ...range })).data.result
}

/** Metrics that stay 0 in this test. */
const NEVER = /slidegate_redis_evicted_keys_total|slidegate_store_clock_steps_total/

async function isAnswered(
  { expr, instant }: Question,
  values: Readonly<Record<string, string>>,
): Promise<boolean> {
  const query = filled(expr, { ...SCALE, ...values })
  const series = instant ? await now(query) : await overTime(query)
  return series
    .flatMap(({ value, values: many = [] }) => (value ? [value] : many))
    .some(([, text]) => (NEVER.test(expr) ? Number(text) === 0 : Number(text) > 0))
}

/** Returns the choices of a variable. */
async function choicesOf(metric: string, label: string): Promise<string[]> {
  const { data } = await prometheus.get<{ data: string[] }>(`/api/v1/label/${label}/values`, {
    'match[]': metric,
  })
  return data
}

/** Returns values for a dashboard's variables, for the limiter with all events. */
async function chosen(dashboard: Dashboard): Promise<Record<string, string>> {
  const values: Record<string, string> = { limiter: 'api' }
  for (const variable of dashboard.templating.list.slice(1)) {
    const [metric, label] = labelAsked(variable)
    const choices = await choicesOf(filled(metric, values), label)
    if (variable.multi === true) values[variable.name] = anyOf(choices)
    else expect(choices).toContain(values[variable.name])
  }
  return values
}

beforeAll(async () => {
  const redis = await startRedis(['--maxmemory', '64mb', '--slowlog-log-slower-than', '0'])
  open({ [Symbol.asyncDispose]: () => redis.stop() })
  const replica = await startRedis(['--replicaof', '127.0.0.1', `${redis.port}`])
  open({ [Symbol.asyncDispose]: () => replica.stop() })
  const services = [open(await watchedService(redis.url)), open(await watchedService(redis.url))] as const
  const alone = open(await watchedAlone())
  targets = [...services, alone].map(({ httpUrl }) => new URL(httpUrl).host)
  gone = `127.0.0.1:${await freePort()}`

  alertmanager = open(await startAlertmanager())
  prometheus = open(
    await startProgram('prometheus', async (folder, address) => {
      const token = join(folder, 'read-token')
      const config = join(folder, 'prometheus.yaml')
      await copyFile(join(ROOT, 'deploy/prometheus/alerts.yaml'), join(folder, 'alerts.yaml'))
      await writeFile(token, TOKEN)
      await writeFile(
        config,
        replaced(await deployed('prometheus/prometheus.yaml'), {
          'scrape_interval: 10s': 'scrape_interval: 2s',
          'evaluation_interval: 30s': 'evaluation_interval: 1s',
          '/run/secrets/read-token': token,
          'slidegate-1:8080, slidegate-2:8080': [...targets, gone].join(', '),
          'alertmanager:9093': new URL(alertmanager.url).host,
        }),
      )
      return [
        `--config.file=${config}`,
        `--storage.tsdb.path=${join(folder, 'data')}`,
        '--storage.tsdb.retention.time=1h',
        `--web.listen-address=${address}`,
        '--log.level=error',
      ]
    }),
  )
  // Opened last, so that the traffic stops before the services.
  open(startTraffic(services, alone))

  await until('scrapes', async () => (await now('sum(up)'))[0]?.value?.[1] === '3', DEADLINE_MS)
  await redis.kill()
  await until(
    'a visible outage',
    async () => {
      const outage = ['ALERTS{alertname="SlidegateStoreDown"}', 'max(slidegate_redis_up) == 0']
      return (await Promise.all(outage.map(overTime))).every((series) => series.length > 0)
    },
    DEADLINE_MS,
  )
  // The new server has no data and no script.
  await redis.start()
})

it('Prometheus scrapes all instances, with the token from its file', async () => {
  const expected = [...targets.map((target) => `${target} 1`), `${gone} 0`].sort().join('\n')
  await until('all instances', async () => {
    const up = (await now('up{job="slidegate"}')).map(
      ({ metric, value }) => `${metric.instance} ${value![1]}`,
    )
    return up.sort().join('\n') === expected
  })
})

describe.each(Object.values(written).map((dashboard) => [dashboard.uid, dashboard] as const))(
  '%s',
  (_, dashboard) => {
    it('every query of every panel returns data', async () => {
      let unanswered = questionsOf(dashboard)
      expect(unanswered.length).toBeGreaterThan(15)
      try {
        await until(
          'answers',
          async () => {
            const values = await chosen(dashboard)
            const answers = await Promise.all(unanswered.map((question) => isAnswered(question, values)))
            unanswered = unanswered.filter((_question, i) => !answers[i])
            return unanswered.length === 0
          },
          DEADLINE_MS,
        )
      } finally {
        expect(unanswered).toEqual([])
      }
    })

    it('annotations return data if there are events', async () => {
      for (const { target } of dashboard.annotations.list) {
        await expect(overTime(filled(target.expr, SCALE))).resolves.toBeInstanceOf(Array)
      }
    })
  },
)

it('Prometheus loads and evaluates all rules', async () => {
  const expected = parse(await deployed('prometheus/alerts.yaml')).groups as {
    name: string
    rules: object[]
  }[]
  await until(
    'all rules to be evaluated',
    async () => {
      const { data } = await prometheus.get<{
        data: { groups: { name: string; rules: { name: string; health: string; lastError?: string }[] }[] }
      }>('/api/v1/rules')
      expect(data.groups.map(({ name, rules }) => [name, rules.length]).sort()).toEqual(
        expected.map(({ name, rules }) => [name, rules.length]).sort(),
      )
      const rules = data.groups.flatMap((group) => group.rules)
      expect(rules.filter(({ lastError }) => lastError)).toEqual([])
      return rules.every(({ health }) => health === 'ok')
    },
    DEADLINE_MS,
  )
})

it('Prometheus reports the outage, and notifies Slack of evicted keys', async () => {
  // The alert fires after a minute.
  const outage = await overTime('ALERTS{alertname="SlidegateStoreDown"}')
  expect(outage.map(({ metric }) => metric)).toContainEqual(
    expect.objectContaining({ alertstate: 'pending', severity: 'critical' }),
  )
  const evictions = `*${targets[2]} evicts keys in use* (warning)`
  const isTold = () => alertmanager.slack.some(({ text }) => text.includes(evictions))
  await until('a message', async () => isTold(), DEADLINE_MS)
})
