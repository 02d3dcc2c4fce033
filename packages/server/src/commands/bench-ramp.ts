// slidegate bench --ramp.

import { type Command, InvalidArgumentError, Option } from 'commander'
import { UsageError } from '../../../replay/src/errors.ts'
import { formatCount, printable } from '../../../replay/src/text.ts'
import { print, type ServiceFlags, targetOf } from '../client/command.ts'
import { ClientError, EXIT } from '../client/service-client.ts'
import { isRedisUrl, withoutCredentials } from '../config/redis-url.ts'
import type { RampPlan } from '../load/run-ramp.ts'
import { keysOf, mustBeAllowed, tryOnce } from '../load/start.ts'
import { addressOf } from '../service/listeners.ts'

export interface BenchFlags extends ServiceFlags {
  readonly seconds: number
  readonly connections: number
  readonly keys: number
  readonly yes?: boolean
  readonly ramp?: Rates
  readonly factor?: number
  readonly grpc?: string
  readonly descriptor?: string
  readonly redis?: string
  readonly memory?: boolean
  readonly limit?: string
}

/** The first and last rates of a ramp, per second. */
interface Rates {
  readonly from: number
  readonly to: number
}

const DEFAULT_RATES = '100..100000/s'
const MAX_RATE = 100_000
const DEFAULT_FACTOR = 2
const DEFAULT_LIMIT = '100/1m'
const DEFAULT_DESCRIPTOR = 'user'
const GRPC_ADDRESS = /^(\[[\da-fA-F:.]+\]|[\w.-]+):(\d{1,5})$/

/** Maximum duration of a whole ramp, and its maximum number of requests. */
const MAX_RAMP_SECONDS = 600
const MAX_RAMP_REQUESTS = 10_000_000

export function withRampOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--ramp [rates]',
        `send requests on a schedule, at increasing rates until saturation (default rates: ${DEFAULT_RATES})`,
      )
        .argParser(ratesIn)
        .preset(DEFAULT_RATES),
    )
    .option(
      '--factor <factor>',
      `ramp: factor by which each step raises the rate (default: ${DEFAULT_FACTOR})`,
      factorIn,
    )
    .addOption(
      new Option(
        '--grpc <address>',
        "ramp: use Envoy's protocol, at an address such as 127.0.0.1:8081; <limiter> is the domain",
      ).conflicts(['redis', 'memory']),
    )
    .option('--descriptor <key>', `ramp with --grpc: key in each descriptor (default: ${DEFAULT_DESCRIPTOR})`)
    .addOption(
      new Option(
        '--redis <url>',
        'ramp: call the library in this process, with this Redis as its store',
      ).conflicts('memory'),
    )
    .option('--memory', 'ramp: call the library in this process, with a memory store')
    .option(
      '--limit <limit>',
      `ramp with --redis or --memory: limit for each key (default: ${DEFAULT_LIMIT})`,
    )
}

function ratesIn(text: string): Rates {
  const [, from = 0, to = 0] = (/^(\d{1,6})\.\.(\d{1,6})(?:\/s)?$/.exec(text) ?? []).map(Number)
  if (from >= 1 && from <= to && to <= MAX_RATE) return { from, to }
  throw new InvalidArgumentError(
    `It must be two rates from 1 to ${MAX_RATE} per second, such as 100..5000/s, the lower one first. Write <limiter> before --ramp.`,
  )
}

function factorIn(text: string): number {
  const factor = /^\d{1,2}(\.\d{1,3})?$/.test(text) ? Number(text) : 0
  if (factor >= 1.1 && factor <= 10) return factor
  throw new InvalidArgumentError('It must be a number from 1.1 to 10.')
}

/** @throws {UsageError} if an option for ramps is set */
export function mustNotBeRamp(flags: BenchFlags): void {
  for (const name of ['factor', 'grpc', 'descriptor', 'redis', 'memory', 'limit'] as const) {
    if (flags[name] !== undefined) throw new UsageError(`--${name} needs --ramp`)
  }
}

export async function ramp(limiter: string, flags: BenchFlags): Promise<void> {
  const { seconds, keys: count } = flags
  const { from, to } = flags.ramp!
  // Loaded late, because the library, the gRPC client and the Redis client are large.
  const { ratesOf } = await import('../load/ramp.ts')
  const rates = ratesOf(from, to, flags.factor ?? DEFAULT_FACTOR)
  const requests = seconds * rates.reduce((sum, rate) => sum + rate, 0)
  if (seconds * rates.length > MAX_RAMP_SECONDS || requests > MAX_RAMP_REQUESTS) {
    throw new UsageError(
      `the ramp could take ${formatCount(seconds * rates.length)} s and ${formatCount(requests)} requests; at most ${MAX_RAMP_SECONDS} s and ${formatCount(MAX_RAMP_REQUESTS)} requests are allowed, so reduce --seconds or the rates, or increase --factor`,
    )
  }
  const opened = await openTarget(limiter, flags, keysOf(count))
  const { rampLinesOf, reportRamp } = await import('../load/run-ramp.ts')
  const report = await reportRamp({ ...opened, rates, seconds, keys: count })
  print(flags, report, () => rampLinesOf(printable(limiter), report))
  if (report.saturation === 'errors' && report.sustained === null) {
    throw new ClientError(EXIT.failure, 'some requests got no decision')
  }
}

/** Checks the target's options, then opens the target. */
async function openTarget(
  limiter: string,
  flags: BenchFlags,
  keys: readonly string[],
): Promise<Pick<RampPlan, 'name' | 'target'>> {
  const { connections, grpc, redis, memory, descriptor, limit, yes } = flags
  const isLibrary = redis !== undefined || memory === true
  if (descriptor !== undefined && grpc === undefined) throw new UsageError('--descriptor needs --grpc')
  if (limit !== undefined && !isLibrary) throw new UsageError('--limit needs --redis or --memory')
  const { grpcTarget, httpTarget, libraryTarget } = await import('../load/targets.ts')
  if (isLibrary) {
    if (redis !== undefined) mustBeAllowed(redisHostOf(redis), yes)
    const { parseLimit } = await import('../../../replay/src/limit-option.ts')
    const target = await libraryTarget(limiter, parseLimit(limit ?? DEFAULT_LIMIT), keys, redis)
    return { name: redis === undefined ? 'library in memory' : 'library on Redis', target }
  }
  const service = targetOf(flags)
  if (grpc !== undefined) {
    const [, , port] = GRPC_ADDRESS.exec(grpc) ?? []
    if (!(Number(port) >= 1 && Number(port) <= 65_535)) {
      throw new UsageError(`invalid --grpc "${printable(grpc)}"; use a value such as 127.0.0.1:8081`)
    }
    mustBeAllowed(addressOf(grpc).host, yes)
    const target = await grpcTarget(grpc, limiter, descriptor ?? DEFAULT_DESCRIPTOR, keys, service)
    return { name: 'gRPC', target }
  }
  mustBeAllowed(service.url.hostname, yes)
  await tryOnce(service, limiter, keys[0]!)
  const bodies = keys.map((key) => JSON.stringify({ limiter, key }))
  return { name: 'HTTP', target: httpTarget(service, bodies, connections) }
}

/** @throws {UsageError} */
function redisHostOf(redis: string): string {
  if (isRedisUrl(redis)) return new URL(redis).hostname
  const shown = printable(withoutCredentials(redis))
  throw new UsageError(`invalid --redis "${shown}"; use a value such as redis://user:password@127.0.0.1:6379`)
}
