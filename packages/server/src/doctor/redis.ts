// Checks Redis: version, memory, persistence, latency, clock, replicas, Cluster and permissions.

import type { Redis } from 'ioredis'
import { messageOf } from '../../../replay/src/errors.ts'
import { formatCount, formatDuration, formatPercent } from '../../../replay/src/text.ts'
import { RedisLink } from '../admin/redis-link.ts'
import type { StoreConfig } from '../config/schema.ts'
import { RedisInfo } from '../metrics/redis-health.ts'
import { type Check, counted } from './check.ts'
import { rightsOf } from './rights.ts'

type RedisConfig = NonNullable<StoreConfig['redis']>

const PINGS = 100
const PINGS_MS = 1000
const CONNECT_MS = 1000

const MAX_CLOCK_MS = 1000
const MAX_SCRIPT_MICROS = 1000
/** With fewer calls, the slow first call makes the average too high. */
const MIN_SCRIPT_CALLS = 100
const MAX_LAG_BYTES = 2 ** 20
/** Maximum share of `maxmemory` that may be used without a warning. */
const MAX_MEMORY = 0.8

const SETTINGS = 'docs/production.md#redis-settings'

/**
 * Checks the servers of a store. Only writes keys with the store's prefix, and removes them afterwards.
 *
 * Each step ends within a second, even if Redis doesn't respond.
 *
 * @param folder the base folder for relative file names
 * @param timeoutMs the shortest timeout of any limiter
 */
export async function checkRedis(config: RedisConfig, folder: string, timeoutMs: number): Promise<Check[]> {
  const link = new RedisLink(config, folder)
  const target = `Redis at ${link.address}`
  try {
    await link.connected(CONNECT_MS)
    const latency = await latencyOf(link, target, timeoutMs)
    const servers = await link.askEach(factsOf)
    const checks = Array.from(servers).flatMap(([node, facts]) => checksOf(node, facts, link))
    return [latency, ...checks, ...(await rightsOf(link, target, config))]
  } catch (error) {
    const reason = messageOf(error)
    // The client closes the connection before it reports the reason.
    return [unusable(target, reason.includes("isn't writeable") ? (link.lastError ?? reason) : reason)]
  } finally {
    link.close()
  }
}

function unusable(target: string, reason: string): Check {
  const isAuth = /NOAUTH|WRONGPASS|NOPERM|username-password/.test(reason)
  return {
    target,
    name: 'connection',
    status: 'problem',
    value: reason.replace(/^the Redis command failed: |^Redis is unreachable: /, ''),
    expected: 'a response to PING within 1 s',
    fix: isAuth
      ? 'set the user and password in store.redis.url: redis://user:password@host:6379'
      : 'start Redis, or fix store.redis.url or the firewall; try redis-cli -u <url> ping',
    docs: isAuth ? 'docs/production.md#access' : 'docs/operations.md#redis-is-down',
  }
}

async function latencyOf(link: RedisLink, target: string, timeoutMs: number): Promise<Check> {
  const times: number[] = []
  const startMs = performance.now()
  for (let i = 0; i < PINGS && performance.now() - startMs < PINGS_MS; i++) {
    const sentMs = performance.now()
    // If the user has no permission for PING, the error response takes just as long.
    await link
      .ask((redis) => redis.ping())
      .catch((error) => {
        if (!messageOf(error).includes('NOPERM')) throw error
      })
    times.push(performance.now() - sentMs)
  }
  times.sort((a, b) => a - b)
  const at = (share: number) => times[Math.ceil(share * times.length) - 1]!
  const [median, p99] = [at(0.5), at(0.99)]
  const value = `median ${median.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms over ${times.length} PINGs; timeoutMs is ${timeoutMs}`
  const base = { target, name: 'latency', value }
  if (p99 < timeoutMs / 2) return { ...base, status: 'ok' }
  return {
    ...base,
    status: median < timeoutMs / 2 ? 'warning' : 'problem',
    expected: `below ${timeoutMs / 2} ms, half of timeoutMs`,
    fix: "move Redis closer, find slow commands with redis-cli SLOWLOG GET, or raise the limiters' timeoutMs",
    docs: 'docs/alerts.md#slidegatestoreslow',
  }
}

interface Facts {
  /** Each of these values is `undefined` if the user may not read it. */
  readonly info: string | undefined
  readonly cluster: string | undefined
  /** The server's clock minus this machine's, in milliseconds. */
  readonly skewMs: number | undefined
  readonly save: string | undefined
}

/** Returns an instruction for changing a server setting. */
type SettingFix = (name: string, value: string) => string

async function factsOf(server: Redis): Promise<Facts> {
  const unlessRefused = <Answer>(answer: Promise<Answer>) => answer.catch(() => undefined)
  const sentMs = Date.now()
  const skew = server.time().then(([seconds, micros]) => {
    const serverMs = 1000 * Number(seconds) + Number(micros) / 1000
    return serverMs - (sentMs + Date.now()) / 2
  })
  const [skewMs, info, cluster, save] = await Promise.all([
    unlessRefused(skew),
    unlessRefused(server.info('everything')),
    unlessRefused(server.cluster('INFO') as Promise<string>),
    unlessRefused(server.config('GET', 'save') as Promise<string[]>),
  ])
  return { info, cluster, skewMs, save: save?.[1] }
}

function checksOf(node: string, facts: Facts | undefined, link: RedisLink): Check[] {
  const target = `Redis at ${node}`
  if (facts === undefined) return [unusable(target, 'no response within 1 s')]
  const cli = `redis-cli -h ${node.slice(0, node.lastIndexOf(':'))} -p ${node.slice(node.lastIndexOf(':') + 1)}`
  const clock = clockCheck(facts.skewMs)
  if (facts.info === undefined) {
    const info: Check = {
      target,
      name: 'settings',
      status: 'skipped',
      value: "this user isn't allowed to run INFO, so version, memory, persistence and replicas are unknown",
      fix: `${cli} ACL SETUSER <user> +info`,
      docs: 'docs/production.md#permissions-for-the-service',
    }
    return [info, { target, ...clock }]
  }
  const info = new RedisInfo(facts.info)
  // Managed servers have no CONFIG.
  const fixFor: SettingFix = (name, value) =>
    facts.save === undefined
      ? `set ${name} to ${value} in the provider's settings, or as a user that may run CONFIG`
      : `${cli} CONFIG SET ${name} ${value}`
  const found = [
    versionCheck(info),
    evictionCheck(info, fixFor),
    memoryCheck(info, fixFor),
    persistenceCheck(info, facts.save, cli),
    replicaCheck(info, link.isCluster),
    clusterCheck(info, facts.cluster, link.isCluster, cli),
    scriptCheck(info, facts.save !== undefined),
    clock,
  ]
  return found.map((check) => ({ target, ...check }))
}

type Found = Omit<Check, 'target'>

function versionCheck(info: RedisInfo): Found {
  const valkey = info.text('valkey_version')
  const version = valkey ?? info.text('redis_version') ?? 'unknown'
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const isEnough = valkey === undefined ? major >= 7 : major > 7 || (major === 7 && minor >= 2)
  const check = { name: 'version', value: `${valkey === undefined ? 'Redis' : 'Valkey'} ${version}` }
  if (isEnough) return { ...check, status: 'ok' }
  return {
    ...check,
    status: 'problem',
    expected: 'Redis 7.0, Valkey 7.2 or later',
    fix: 'upgrade the server',
    docs: 'docs/production.md#patched-versions',
  }
}

function evictionCheck(info: RedisInfo, fixFor: SettingFix): Found {
  const value = info.text('maxmemory_policy') ?? 'unknown'
  const evicted = info.number('evicted_keys') ?? 0
  const check = {
    name: 'eviction',
    value: evicted === 0 ? value : `${value}; ${formatCount(evicted)} keys evicted since startup`,
  }
  if (value === 'noeviction') return { ...check, status: 'ok' }
  return {
    ...check,
    // Without `maxmemory`, Redis doesn't evict keys.
    status: info.number('maxmemory') === 0 ? 'warning' : 'problem',
    expected: 'noeviction: an evicted key silently resets a limit',
    fix: fixFor('maxmemory-policy', 'noeviction'),
    docs: SETTINGS,
  }
}

function memoryCheck(info: RedisInfo, fixFor: SettingFix): Found {
  const [used = 0, most = 0] = [info.number('used_memory'), info.number('maxmemory')]
  const fix = fixFor('maxmemory', '<bytes>')
  if (most === 0) {
    return {
      name: 'maxmemory',
      status: 'warning',
      value: `unlimited; ${megabytes(used)} used`,
      expected: 'twice the memory that you expect to use, and less than the machine has',
      fix,
      docs: 'docs/production.md#memory',
    }
  }
  const check = {
    name: 'maxmemory',
    value: `${megabytes(most)}, ${formatPercent(used, most)} used`,
  }
  if (used <= MAX_MEMORY * most) return { ...check, status: 'ok' }
  return {
    ...check,
    status: used < most ? 'warning' : 'problem',
    expected: `at most ${formatPercent(MAX_MEMORY, 1)} used`,
    fix,
    docs: 'docs/alerts.md#slidegateredismemoryhigh',
  }
}

function megabytes(bytes: number): string {
  return `${Number((bytes / 2 ** 20).toFixed(1)).toLocaleString('en-US')} MiB`
}

function persistenceCheck(info: RedisInfo, save: string | undefined, cli: string): Found {
  const docs = 'docs/production.md#persistence'
  const failed = ['aof_last_write_status', 'rdb_last_bgsave_status'].filter(
    (each) => info.text(each) === 'err',
  )
  if (failed.length > 0) {
    return {
      name: 'persistence',
      status: 'problem',
      value: `the last save failed (${failed.join(', ')})`,
      expected: 'successful saves: otherwise Redis may reject writes',
      fix: "free up disk space, and check the server's log",
      docs,
    }
  }
  if (info.number('aof_enabled') === 1)
    return { name: 'persistence', status: 'ok', value: 'append-only file' }
  if (save === undefined)
    return { name: 'persistence', status: 'ok', value: 'no append-only file; snapshots unknown' }
  if (save !== '') return { name: 'persistence', status: 'ok', value: 'snapshots' }
  return {
    name: 'persistence',
    status: 'warning',
    value: 'none: a restart resets all limits',
    expected: 'an append-only file, unless a reset is acceptable',
    fix: `${cli} CONFIG SET appendonly yes`,
    docs,
  }
}

function replicaCheck(info: RedisInfo, isCluster: boolean): Found {
  const docs = 'docs/production.md#failover'
  if (info.text('role') === 'slave') {
    const isLinked = info.text('master_link_status') === 'up'
    const value = `a replica, ${isLinked ? 'connected to' : 'cut off from'} its primary`
    if (isCluster && isLinked) return { name: 'replicas', status: 'ok', value }
    return {
      name: 'replicas',
      status: 'problem',
      value,
      expected: isCluster ? 'connected' : 'a primary: replicas reject writes',
      fix: isCluster ? "check the server's log" : 'set store.redis.url to the primary',
      docs,
    }
  }
  const count = info.number('connected_slaves') ?? 0
  if (count === 0)
    return { name: 'replicas', status: 'ok', value: 'none: if this server is down, so is the limiter' }
  const lag = info.replicaLagBytes ?? 0
  const check = { name: 'replicas', value: `${count}, at most ${formatCount(lag)} bytes behind` }
  if (lag <= MAX_LAG_BYTES) return { ...check, status: 'ok' }
  return {
    ...check,
    status: 'warning',
    expected: `below ${formatCount(MAX_LAG_BYTES)} bytes: a failover loses what the replica hasn't received`,
    fix: "check the network and the replica's load",
    docs: 'docs/alerts.md#slidegatereplicationlag',
  }
}

function clusterCheck(info: RedisInfo, cluster: string | undefined, isCluster: boolean, cli: string): Found {
  const docs = 'docs/production.md#cluster'
  const name = 'cluster'
  const isNode = info.number('cluster_enabled') === 1
  if (!isNode && !isCluster) return { name, status: 'ok', value: 'not a Cluster' }
  if (isNode !== isCluster) {
    return {
      name,
      status: 'problem',
      value: isNode ? 'a Cluster node, used as a single server' : 'a single server, used as a Cluster',
      expected: isNode ? 'used as a Cluster' : 'used as a single server',
      fix: `set store.redis.cluster to ${isNode}`,
      docs,
    }
  }
  if (cluster === undefined) {
    return {
      name,
      status: 'skipped',
      value: "this user isn't allowed to run CLUSTER INFO",
      fix: `${cli} ACL SETUSER <user> '+cluster|info'`,
      docs: 'docs/production.md#permissions-for-your-client',
    }
  }
  const state = new RedisInfo(cluster)
  const [assigned, ok] = [state.number('cluster_slots_assigned'), state.number('cluster_slots_ok')]
  const value = `${state.text('cluster_state')}, ${formatCount(ok ?? 0)} of 16,384 slots served`
  if (state.text('cluster_state') === 'ok' && assigned === 16_384 && ok === assigned)
    return { name, status: 'ok', value }
  return {
    name,
    status: 'problem',
    value,
    expected: 'ok, all slots served',
    fix: `${cli} --cluster check`,
    docs,
  }
}

function scriptCheck(info: RedisInfo, hasConfig: boolean): Found {
  const { scripts } = info
  const name = 'script time'
  const calls = scripts?.calls ?? 0
  if (scripts === undefined || calls < MIN_SCRIPT_CALLS)
    return { name, status: 'ok', value: `${counted(calls, 'call')}, too few to judge` }
  const micros = (1e6 * scripts.seconds) / calls
  const check = {
    name,
    value: `${formatCount(Math.round(micros))} µs per call on average, across all scripts`,
  }
  if (micros <= MAX_SCRIPT_MICROS) return { ...check, status: 'ok' }
  return {
    ...check,
    status: 'warning',
    expected: `below ${formatCount(MAX_SCRIPT_MICROS)} µs`,
    fix: `use smaller batches or fewer limits per key${hasConfig ? '; redis-cli CONFIG RESETSTAT starts a new average' : ''}`,
    docs: 'docs/alerts.md#slidegatescripttimegrowing',
  }
}

function clockCheck(skewMs: number | undefined): Found {
  const name = 'clock'
  if (skewMs === undefined) return { name, status: 'skipped', value: "this user isn't allowed to run TIME" }
  const size = Math.round(Math.abs(skewMs))
  const value =
    size < 5
      ? 'the same as on this machine'
      : `${formatDuration(size)} ${skewMs > 0 ? 'ahead of' : 'behind'} this machine`
  if (size <= MAX_CLOCK_MS) return { name, status: 'ok', value }
  return {
    name,
    status: 'warning',
    value,
    expected: 'within 1s',
    fix: 'run NTP on both machines, and check it with chronyc tracking',
    docs: 'docs/production.md#clocks',
  }
}
