// Metrics of Redis servers, from redis-health.ts.

import { counter, gauge, type Metric, type Row } from './metric.ts'
import type { ServerHealth } from './redis-health.ts'

/** Of each server of Redis. All processes see the same ones: their values do not add up. */
export function redisMetrics(servers: readonly ServerHealth[]): Metric[] {
  const each = (value: (server: ServerHealth) => number | undefined): Row<number>[] =>
    servers.flatMap((server) => {
      const found = value(server)
      return found === undefined ? [] : [[{ node: server.node }, found] as const]
    })
  const told = (name: string) => each(({ info }) => info?.number(name))
  return [
    gauge(
      'slidegate_redis_up',
      '1 where the server answers.',
      each(({ up }) => (up ? 1 : 0)),
      'max',
    ),
    gauge('slidegate_redis_memory_used_bytes', 'Memory in use.', told('used_memory'), 'max'),
    gauge('slidegate_redis_memory_max_bytes', 'maxmemory; 0 is no bound.', told('maxmemory'), 'max'),
    counter(
      'slidegate_redis_commands_total',
      'Commands of all its clients.',
      told('total_commands_processed'),
      'max',
    ),
    counter(
      'slidegate_redis_cpu_seconds_total',
      'CPU time.',
      each(({ info }) => info?.cpuSeconds),
      'max',
    ),
    counter(
      'slidegate_redis_evicted_keys_total',
      'Keys that were thrown out for want of memory: each may be a limit that begins anew.',
      told('evicted_keys'),
      'max',
    ),
    gauge('slidegate_redis_connected_clients', 'Connections.', told('connected_clients'), 'max'),
    gauge(
      'slidegate_redis_replica_lag_bytes',
      'How far the slowest replica is behind.',
      each(({ info }) => info?.replicaLagBytes),
      'max',
    ),
    counter(
      'slidegate_redis_script_calls_total',
      'Calls of scripts.',
      each(({ info }) => info?.scripts?.calls),
      'max',
    ),
    counter(
      'slidegate_redis_script_seconds_total',
      'Time in scripts.',
      each(({ info }) => info?.scripts?.seconds),
      'max',
    ),
    counter(
      'slidegate_redis_slow_scripts_total',
      'Calls of our script in the slow log, since this service has begun to read it.',
      each(({ slowScripts }) => slowScripts),
      'max',
    ),
  ]
}
