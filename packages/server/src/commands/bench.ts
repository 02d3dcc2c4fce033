// slidegate bench.

import type autocannon from 'autocannon'
import type { Command } from 'commander'
import { alignColumns, formatCount, formatPercent, printable } from '../../../replay/src/text.ts'
import { numberUpTo } from '../client/arguments.ts'
import { addServiceCommand, print, targetOf } from '../client/command.ts'
import { ClientError, EXIT, type Target, urlAt } from '../client/service-client.ts'
import { keysOf, mustBeAllowed, tryOnce } from '../load/start.ts'
import { type BenchFlags, mustNotBeRamp, ramp, withRampOptions } from './bench-ramp.ts'

type Result = Awaited<ReturnType<typeof autocannon>>

/** The results. Latencies are in milliseconds. */
interface Report {
  readonly seconds: number
  readonly connections: number
  readonly keys: number
  readonly requests: number
  readonly perSecond: number
  readonly allowed: number
  readonly denied: number
  /** Counts of other responses, by HTTP status. */
  readonly other: Readonly<Record<string, number>>
  /** Requests without a response. */
  readonly errors: number
  readonly latencyMs: Readonly<Record<'p50' | 'p90' | 'p99' | 'p99_9' | 'max', number>>
}

const MAX_SECONDS = 60
const MAX_CONNECTIONS = 1024
const MAX_KEYS = 10_000

export function addBenchCommand(program: Command): void {
  const command = addServiceCommand(program, 'bench', "measure a service's throughput and latency")
    .argument('<limiter>', 'limiter name; the run charges only random keys')
    .option(
      '--seconds <seconds>',
      'duration of the run, or of each step in a ramp',
      numberUpTo(MAX_SECONDS),
      5,
    )
    .option(
      '--connections <count>',
      'concurrent connections, each with one request in flight',
      numberUpTo(MAX_CONNECTIONS),
      10,
    )
    .option('--keys <count>', 'number of keys', numberUpTo(MAX_KEYS), 100)
    .option('--yes', 'allow a load test of a service on another machine')
  withRampOptions(command).action((limiter: string, flags: BenchFlags) =>
    (flags.ramp ? ramp : bench)(limiter, flags),
  )
}

async function bench(limiter: string, flags: BenchFlags): Promise<void> {
  mustNotBeRamp(flags)
  const { seconds, connections, keys: count } = flags
  const target = targetOf(flags)
  mustBeAllowed(target.url.hostname, flags.yes)
  const keys = keysOf(count)
  await tryOnce(target, limiter, keys[0]!)
  const bodies = keys.map((key) => JSON.stringify({ limiter, key }))
  const report = reportOf(await load(target, bodies, seconds, connections), connections, count)
  print(flags, report, () => linesOf(limiter, report))
  if (report.requests === 0 || report.errors > 0 || Object.keys(report.other).length > 0) {
    throw new ClientError(EXIT.failure, 'some requests got no decision')
  }
}

async function load(
  target: Target,
  bodies: readonly string[],
  seconds: number,
  connections: number,
): Promise<Result> {
  const { default: start } = await import('autocannon')
  const { url, token, ca, cert, key } = target
  const running = start({
    url: urlAt(url, '/v1/consume').href,
    ...{ connections, duration: seconds, method: 'POST' },
    headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
    requests: bodies.map((body) => ({ body })),
    ...(url.protocol === 'https:' && { tlsOptions: { ca, cert, key } }),
    sampleInt: 100,
  })
  const stop = () => running.stop()
  process.once('SIGINT', stop).once('SIGTERM', stop)
  try {
    return await running
  } finally {
    process.off('SIGINT', stop).off('SIGTERM', stop)
  }
}

function reportOf(result: Result, connections: number, keys: number): Report {
  const counts = Object.entries(result.statusCodeStats).map(([status, { count }]) => [status, count] as const)
  const of = (status: string) => counts.find(([each]) => each === status)?.[1] ?? 0
  const { p50, p90, p99, p99_9, max } = result.latency
  return {
    ...{ seconds: result.duration, connections, keys, requests: result.requests.total },
    perSecond: Math.round(result.requests.total / result.duration),
    ...{ allowed: of('200'), denied: of('429') },
    other: Object.fromEntries(counts.filter(([status]) => status !== '200' && status !== '429')),
    errors: result.errors,
    latencyMs: { p50, p90, p99, p99_9, max },
  }
}

function linesOf(limiter: string, report: Report): string[] {
  const { seconds, connections, keys, requests, perSecond, allowed, denied, other, errors, latencyMs } =
    report
  const { p50, p90, p99, p99_9, max } = latencyMs
  return [
    `${printable(limiter)}: ${formatCount(perSecond)} decisions per second, with ${connections} connections and ${formatCount(keys)} keys, over ${seconds} s`,
    ...alignColumns([
      ['allowed', formatCount(allowed), formatPercent(allowed, requests)],
      ['denied', formatCount(denied), formatPercent(denied, requests)],
      ...Object.entries(other).map(([status, count]) => [
        `HTTP ${status}`,
        formatCount(count),
        formatPercent(count, requests),
      ]),
      ...(errors > 0 ? [['no response', formatCount(errors)]] : []),
    ]),
    `  latency: p50 ${p50} ms, p90 ${p90} ms, p99 ${p99} ms, p99.9 ${p99_9} ms, max ${max} ms`,
    '  Each connection sends one request at a time. If the service runs on the same machine, this program competes with it for CPU time.',
  ]
}
