import { dashboard, from, heatmap, lines, number, variable } from './grafana.js'

const RATE = '$__rate_interval'
const NODE = 'node=~"$node"'

// Each instance asks each server: the greatest of what they were told is what holds.
/** @param {string} metric */
const gauge = (metric) => `max by (node) (${metric}{${NODE}})`
/** @param {string} metric */
const rate = (metric) => `max by (node) (rate(${metric}{${NODE}}[${RATE}]))`
/** @param {number} quantile @param {string} metric */
const quantileOf = (quantile, metric) =>
  `histogram_quantile(${quantile}, sum by (le) (rate(${metric}_bucket[${RATE}])))`
/** @param {string} metric */
const mean = (metric) => `sum(rate(${metric}_sum[${RATE}])) / sum(rate(${metric}_count[${RATE}]))`
const memoryShare = `${gauge('slidegate_redis_memory_used_bytes')} / (${gauge('slidegate_redis_memory_max_bytes')} > 0)`

export const store = dashboard({
  uid: 'slidegate-store',
  title: 'slidegate: store',
  description: 'Redis as the instances see it, and as it sees itself; and the processes that ask it.',
  variables: [variable('node', 'label_values(slidegate_redis_up, node)', { label: 'servers', all: true })],
  rows: [
    {
      title: 'Now',
      panels: [
        number({
          title: 'Servers down',
          description: 'Servers of Redis that no instance can reach.',
          steps: from([1, 'red']),
          alert: 'SlidegateRedisDown',
          queries: [{ expr: `count(${gauge('slidegate_redis_up')} == 0) or vector(0)` }],
        }),
        number({
          title: 'Memory',
          description:
            'Used share of maxmemory, of the fullest server. Empty where no maxmemory is set, which should be.',
          unit: 'percentunit',
          steps: from([0.6, 'yellow'], [0.8, 'red']),
          alert: 'SlidegateRedisMemoryHigh',
          queries: [{ expr: `max(${memoryShare})` }],
        }),
        number({
          title: 'Evicted keys',
          description:
            'Within the range that is shown. Each is a limit that began anew, or a ban that ended early.',
          steps: from([1, 'red']),
          alert: 'SlidegateRedisEvictions',
          queries: [{ expr: `max(increase(slidegate_redis_evicted_keys_total{${NODE}}[$__range]))` }],
        }),
        number({
          title: 'CPU',
          description: 'Of the busiest server. Commands run on one core: at 100% it can do no more.',
          unit: 'percentunit',
          steps: from([0.6, 'yellow'], [0.8, 'red']),
          alert: 'SlidegateRedisCpuHigh',
          queries: [{ expr: `max(${rate('slidegate_redis_cpu_seconds_total')})` }],
        }),
        number({
          title: 'Time of a call, p99',
          description: 'As the instances see it.',
          unit: 's',
          steps: from([0.01, 'yellow'], [0.025, 'red']),
          alert: 'SlidegateStoreSlow',
          queries: [{ expr: quantileOf(0.99, 'slidegate_store_call_duration_seconds') }],
        }),
        number({
          title: 'Breakers open',
          description: 'Limiters, in any instance, that do not ask the store at the moment.',
          steps: from([1, 'red']),
          alert: 'SlidegateStoreDown',
          queries: [{ expr: 'sum(slidegate_store_down)' }],
        }),
      ],
    },
    {
      title: 'As the instances see it',
      panels: [
        heatmap({
          title: 'Time of a call',
          description: 'From sending to the answer, of all calls.',
          unit: 's',
          alert: 'SlidegateStoreSlow',
          queries: [
            {
              expr: `sum by (le) (rate(slidegate_store_call_duration_seconds_bucket[${RATE}]))`,
              legend: '{{le}}',
            },
          ],
        }),
        lines({
          title: 'Time of a call, by instance',
          description:
            'The slowest percent of its calls takes this long, or longer. One instance alone: its network, or its event loop.',
          unit: 's',
          steps: from([0.025, 'red']),
          alert: 'SlidegateStoreSlow',
          queries: [
            {
              expr: `histogram_quantile(0.99, sum by (instance, le) (rate(slidegate_store_call_duration_seconds_bucket[${RATE}])))`,
              legend: '{{instance}}',
            },
          ],
        }),
        lines({
          title: 'Calls, and requests in them',
          description: 'Requests that come at the same time travel together.',
          unit: 'reqps',
          size: [8, 8],
          queries: [
            { expr: `sum(rate(slidegate_store_call_duration_seconds_count[${RATE}]))`, legend: 'calls' },
            { expr: `sum(rate(slidegate_store_call_requests_sum[${RATE}]))`, legend: 'requests' },
          ],
        }),
        lines({
          title: 'Requests of a call',
          description: 'On average, and of the largest percent. The more there are, the less each costs.',
          size: [8, 8],
          queries: [
            { expr: mean('slidegate_store_call_requests'), legend: 'mean' },
            { expr: quantileOf(0.99, 'slidegate_store_call_requests'), legend: 'p99' },
          ],
        }),
        lines({
          title: 'Calls that failed, and scripts that were loaded again',
          description:
            'Within five minutes. A script is loaded again after the server has started anew, failed over, or was told SCRIPT FLUSH.',
          size: [8, 8],
          alert: 'SlidegateStoreErrors',
          queries: [
            { expr: 'sum(increase(slidegate_store_failed_calls_total[5m]))', legend: 'failed' },
            {
              expr: 'sum(increase(slidegate_store_script_loads_total[5m]))',
              legend: 'loaded again (NOSCRIPT)',
            },
          ],
        }),
      ],
    },
    {
      title: 'What a decision costs Redis',
      panels: [
        lines({
          title: 'Script time of a call',
          description:
            'Redis does nothing else meanwhile. It grows with logs that grow, and with costly requests.',
          unit: 's',
          size: [8, 8],
          alert: 'SlidegateScriptTimeGrowing',
          queries: [
            {
              expr: `${rate('slidegate_redis_script_seconds_total')} / ${rate('slidegate_redis_script_calls_total')}`,
              legend: '{{node}}',
            },
          ],
        }),
        lines({
          title: 'Script time of a decision',
          description: 'Of all servers together, of decisions that the store was asked for.',
          unit: 's',
          size: [8, 8],
          alert: 'SlidegateScriptTimeGrowing',
          queries: [
            {
              expr: `sum(${rate('slidegate_redis_script_seconds_total')}) / sum(rate(slidegate_decisions_total{source="store"}[${RATE}]))`,
              legend: 'of a decision',
            },
          ],
        }),
        lines({
          title: 'Slow scripts',
          description: 'Entries of our scripts in the slow log, within five minutes.',
          size: [8, 8],
          alert: 'SlidegateSlowScripts',
          queries: [
            {
              expr: `max by (node) (increase(slidegate_redis_slow_scripts_total{${NODE}}[5m]))`,
              legend: '{{node}}',
            },
          ],
        }),
      ],
    },
    {
      title: 'Redis',
      panels: [
        lines({
          title: 'Memory',
          description: 'Used, and maxmemory where it is set.',
          unit: 'bytes',
          size: [8, 8],
          alert: 'SlidegateRedisMemoryHigh',
          queries: [
            { expr: gauge('slidegate_redis_memory_used_bytes'), legend: '{{node}} used' },
            { expr: `${gauge('slidegate_redis_memory_max_bytes')} > 0`, legend: '{{node}} maxmemory' },
          ],
        }),
        lines({
          title: 'Evicted keys',
          description: 'Each is a limit that began anew. Healthy: none, with maxmemory-policy noeviction.',
          unit: 'ops',
          size: [8, 8],
          alert: 'SlidegateRedisEvictions',
          queries: [{ expr: rate('slidegate_redis_evicted_keys_total'), legend: '{{node}}' }],
        }),
        lines({
          title: 'Replication lag',
          description:
            'What the replica that is farthest behind has not got yet: lost counts, if it takes over now.',
          unit: 'bytes',
          size: [8, 8],
          steps: from([1048576, 'red']),
          alert: 'SlidegateReplicationLag',
          queries: [{ expr: gauge('slidegate_redis_replica_lag_bytes'), legend: '{{node}}' }],
        }),
        lines({
          title: 'CPU',
          description: 'Cores in use. Commands run on one.',
          unit: 'percentunit',
          size: [8, 8],
          steps: from([0.8, 'red']),
          alert: 'SlidegateRedisCpuHigh',
          queries: [{ expr: rate('slidegate_redis_cpu_seconds_total'), legend: '{{node}}' }],
        }),
        lines({
          title: 'Commands, and calls of our script',
          description:
            'All commands of everybody, those within scripts included. Many of them, and few calls: somebody else is at work there.',
          unit: 'ops',
          size: [8, 8],
          queries: [
            { expr: rate('slidegate_redis_commands_total'), legend: '{{node}} commands' },
            { expr: rate('slidegate_redis_script_calls_total'), legend: '{{node}} script' },
          ],
        }),
        lines({
          title: 'Connected clients',
          description: 'Connections to the server, of everybody.',
          size: [8, 8],
          queries: [{ expr: gauge('slidegate_redis_connected_clients'), legend: '{{node}}' }],
        }),
      ],
    },
    {
      title: 'Instances',
      panels: [
        lines({
          title: 'Instances',
          description:
            'Those that Prometheus reaches, by version, and those that know of each other through the store. Fewer of the latter: some are on another store, or cannot reach it.',
          size: [6, 8],
          alert: 'SlidegateInstanceDown',
          queries: [
            { expr: 'count by (version) (slidegate_build_info)', legend: 'reached, {{version}}' },
            { expr: 'max(slidegate_instances)', legend: 'on the same store' },
          ],
        }),
        lines({
          title: 'Event loop lag, p99',
          description: 'How long a process is busy before it gets to the next task.',
          unit: 's',
          size: [6, 8],
          steps: from([0.1, 'red']),
          alert: 'SlidegateEventLoopLag',
          queries: [{ expr: 'nodejs_eventloop_lag_p99_seconds{job="slidegate"}', legend: '{{instance}}' }],
        }),
        lines({
          title: 'CPU',
          description: 'Cores in use. Each process decides on one.',
          unit: 'percentunit',
          size: [6, 8],
          queries: [
            { expr: `rate(process_cpu_seconds_total{job="slidegate"}[${RATE}])`, legend: '{{instance}}' },
          ],
        }),
        lines({
          title: 'Memory',
          description: 'Resident memory, and the heap of JavaScript in it.',
          unit: 'bytes',
          size: [6, 8],
          queries: [
            { expr: 'process_resident_memory_bytes{job="slidegate"}', legend: '{{instance}} resident' },
            { expr: 'nodejs_heap_size_used_bytes{job="slidegate"}', legend: '{{instance}} heap' },
          ],
        }),
      ],
    },
    {
      title: 'Store in memory',
      panels: [
        lines({
          title: 'Keys',
          description: 'Of instances that keep their counts themselves. Empty where all are on Redis.',
          queries: [{ expr: 'slidegate_memory_store_keys', legend: '{{instance}}' }],
        }),
        lines({
          title: 'Keys that made room for others',
          description:
            'Their counts began anew: maxKeys is too small for so many callers, or somebody makes up keys.',
          unit: 'ops',
          alert: 'SlidegateMemoryStoreEvictions',
          queries: [
            { expr: `rate(slidegate_memory_store_evicted_keys_total[${RATE}])`, legend: '{{instance}}' },
          ],
        }),
      ],
    },
  ],
})
