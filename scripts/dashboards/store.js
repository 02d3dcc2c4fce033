import { dashboard, from, heatmap, lines, number, variable } from './grafana.js'

const RATE = '$__rate_interval'
const NODE = 'node=~"$node"'

// Every instance reports every server, so queries take the maximum.
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
  description: 'Redis as measured by the instances and by INFO, and the instances that use Redis.',
  variables: [variable('node', 'label_values(slidegate_redis_up, node)', { label: 'servers', all: true })],
  rows: [
    {
      title: 'Now',
      panels: [
        number({
          title: 'Servers down',
          description: 'Redis servers that no instance can reach.',
          steps: from([1, 'red']),
          alert: 'SlidegateRedisDown',
          queries: [{ expr: `count(${gauge('slidegate_redis_up')} == 0) or vector(0)` }],
        }),
        number({
          title: 'Memory',
          description:
            'Share of maxmemory in use on the fullest server. Empty if maxmemory is not set. Always set it.',
          unit: 'percentunit',
          steps: from([0.6, 'yellow'], [0.8, 'red']),
          alert: 'SlidegateRedisMemoryHigh',
          queries: [{ expr: `max(${memoryShare})` }],
        }),
        number({
          title: 'Evicted keys',
          description: 'Within the time range. For each evicted key, a limit was reset or a ban ended early.',
          steps: from([1, 'red']),
          alert: 'SlidegateRedisEvictions',
          queries: [{ expr: `max(increase(slidegate_redis_evicted_keys_total{${NODE}}[$__range]))` }],
        }),
        number({
          title: 'CPU',
          description: 'CPU of the busiest server. Commands run on one core, so 100% is the maximum.',
          unit: 'percentunit',
          steps: from([0.6, 'yellow'], [0.8, 'red']),
          alert: 'SlidegateRedisCpuHigh',
          queries: [{ expr: `max(${rate('slidegate_redis_cpu_seconds_total')})` }],
        }),
        number({
          title: 'Call duration, p99',
          description: 'Measured by the instances.',
          unit: 's',
          steps: from([0.01, 'yellow'], [0.025, 'red']),
          alert: 'SlidegateStoreSlow',
          queries: [{ expr: quantileOf(0.99, 'slidegate_store_call_duration_seconds') }],
        }),
        number({
          title: 'Breakers open',
          description: 'Limiters with an open circuit breaker, across all instances.',
          steps: from([1, 'red']),
          alert: 'SlidegateStoreDown',
          queries: [{ expr: 'sum(slidegate_store_down)' }],
        }),
      ],
    },
    {
      title: 'Calls',
      panels: [
        heatmap({
          title: 'Call duration',
          description: 'From request to response, all calls.',
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
          title: 'Call duration by instance, p99',
          description: 'If only one instance is slow, check its network and event loop.',
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
          title: 'Calls and requests',
          description: 'Concurrent requests share a call.',
          unit: 'reqps',
          size: [8, 8],
          queries: [
            { expr: `sum(rate(slidegate_store_call_duration_seconds_count[${RATE}]))`, legend: 'calls' },
            { expr: `sum(rate(slidegate_store_call_requests_sum[${RATE}]))`, legend: 'requests' },
          ],
        }),
        lines({
          title: 'Requests per call',
          description: 'Mean and 99th percentile. The more requests share a call, the less each one costs.',
          size: [8, 8],
          queries: [
            { expr: mean('slidegate_store_call_requests'), legend: 'mean' },
            { expr: quantileOf(0.99, 'slidegate_store_call_requests'), legend: 'p99' },
          ],
        }),
        lines({
          title: 'Failed calls and script loads',
          description:
            'Within five minutes. The script is loaded again after a restart, a failover or SCRIPT FLUSH.',
          size: [8, 8],
          alert: 'SlidegateStoreErrors',
          queries: [
            { expr: 'sum(increase(slidegate_store_failed_calls_total[5m]))', legend: 'failed' },
            {
              expr: 'sum(increase(slidegate_store_script_loads_total[5m]))',
              legend: 'script loads (NOSCRIPT)',
            },
          ],
        }),
      ],
    },
    {
      title: 'Script time',
      panels: [
        lines({
          title: 'Script time per call',
          description:
            'Redis runs nothing else during a script. Longer logs and expensive requests take longer.',
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
          title: 'Script time per decision',
          description: 'Average across all servers, for decisions made by the store.',
          unit: 's',
          size: [8, 8],
          alert: 'SlidegateScriptTimeGrowing',
          queries: [
            {
              expr: `sum(${rate('slidegate_redis_script_seconds_total')}) / sum(rate(slidegate_decisions_total{source="store"}[${RATE}]))`,
              legend: 'per decision',
            },
          ],
        }),
        lines({
          title: 'Slow scripts',
          description: 'Slow log entries of the script, within five minutes.',
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
          description: 'Used memory, and maxmemory if set.',
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
          description:
            'For each evicted key, a limit was reset. Normally 0, with maxmemory-policy noeviction.',
          unit: 'ops',
          size: [8, 8],
          alert: 'SlidegateRedisEvictions',
          queries: [{ expr: rate('slidegate_redis_evicted_keys_total'), legend: '{{node}}' }],
        }),
        lines({
          title: 'Replication lag',
          description:
            'Bytes that the slowest replica has not received. A failover to that replica would lose these charges.',
          unit: 'bytes',
          size: [8, 8],
          steps: from([1048576, 'red']),
          alert: 'SlidegateReplicationLag',
          queries: [{ expr: gauge('slidegate_redis_replica_lag_bytes'), legend: '{{node}}' }],
        }),
        lines({
          title: 'CPU',
          description: 'Cores in use. Commands run on one core.',
          unit: 'percentunit',
          size: [6, 8],
          steps: from([0.8, 'red']),
          alert: 'SlidegateRedisCpuHigh',
          queries: [{ expr: rate('slidegate_redis_cpu_seconds_total'), legend: '{{node}}' }],
        }),
        lines({
          title: 'Commands and script calls',
          description:
            'Commands from all clients, including commands within scripts. If there are many commands and few script calls, the commands come from other applications.',
          unit: 'ops',
          size: [6, 8],
          queries: [
            { expr: rate('slidegate_redis_commands_total'), legend: '{{node}} commands' },
            { expr: rate('slidegate_redis_script_calls_total'), legend: '{{node}} script' },
          ],
        }),
        lines({
          title: 'Network',
          description: 'Bytes from and to all clients.',
          unit: 'Bps',
          size: [6, 8],
          alert: 'SlidegateRedisNetworkHigh',
          queries: [
            { expr: rate('slidegate_redis_network_received_bytes_total'), legend: '{{node}} in' },
            { expr: rate('slidegate_redis_network_sent_bytes_total'), legend: '{{node}} out' },
          ],
        }),
        lines({
          title: 'Connected clients',
          description: 'Connections from all clients.',
          size: [6, 8],
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
            'Instances that Prometheus reaches, by version, and instances that share the store. If fewer instances share the store, the others use a different store or cannot reach this one.',
          size: [6, 8],
          alert: 'SlidegateInstanceDown',
          queries: [
            { expr: 'count by (version) (slidegate_build_info)', legend: 'reached, {{version}}' },
            { expr: 'max(slidegate_instances)', legend: 'on the same store' },
          ],
        }),
        lines({
          title: 'Event loop lag, p99',
          description: 'How long a task waits in a busy process.',
          unit: 's',
          size: [6, 8],
          steps: from([0.1, 'red']),
          alert: 'SlidegateEventLoopLag',
          queries: [{ expr: 'nodejs_eventloop_lag_p99_seconds{job="slidegate"}', legend: '{{instance}}' }],
        }),
        lines({
          title: 'CPU',
          description: 'Cores in use. Each process makes decisions on one core.',
          unit: 'percentunit',
          size: [6, 8],
          queries: [
            { expr: `rate(process_cpu_seconds_total{job="slidegate"}[${RATE}])`, legend: '{{instance}}' },
          ],
        }),
        lines({
          title: 'Memory',
          description: 'Resident memory, and the JavaScript heap within it.',
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
      title: 'Memory store',
      panels: [
        lines({
          title: 'Keys',
          description: 'Keys in the memory stores of all instances. Empty if all instances use Redis.',
          queries: [{ expr: 'slidegate_memory_store_keys', legend: '{{instance}}' }],
        }),
        lines({
          title: 'Evictions',
          description:
            'For each evicted key, a limit was reset. Either maxKeys is too low for the number of callers, or a client invents keys.',
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
