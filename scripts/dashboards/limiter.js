import { dashboard, from, heatmap, lines, number, states, variable } from './grafana.js'

const RATE = '$__rate_interval'
const OF = 'limiter="$limiter"'
const OF_LIMIT = 'limiter="$limiter", limit=~"$limit"'

/** @param {string} metric @param {string} labels @param {string} [selector] */
const rate = (metric, labels, selector = OF) => `sum by (${labels}) (rate(${metric}{${selector}}[${RATE}]))`
/** @param {string} metric @param {string} [selector] */
const total = (metric, selector = OF) => `sum(rate(${metric}{${selector}}[${RATE}]))`
const decisions = total('slidegate_decisions_total')
/** @param {number} quantile @param {string} metric @param {string} selector @param {string} labels */
const quantileOf = (quantile, metric, selector, labels) =>
  `histogram_quantile(${quantile}, ${rate(`${metric}_bucket`, labels, selector)})`

export const limiter = dashboard({
  uid: 'slidegate-limiter',
  title: 'slidegate: one limiter',
  description: 'Limit usage, denials and their callers, and the effect of shadow limits.',
  variables: [
    variable('limiter', 'label_values(slidegate_decisions_total, limiter)', { label: 'limiter' }),
    variable('limit', `label_values(slidegate_limit_utilization_ratio_count{${OF}}, limit)`, {
      label: 'limits',
      all: true,
    }),
  ],
  rows: [
    {
      title: 'Now',
      panels: [
        number({
          title: 'Requests',
          description: 'Decisions per second.',
          unit: 'reqps',
          queries: [{ expr: decisions }],
        }),
        number({
          title: 'Denied',
          description: 'Share of denied requests.',
          unit: 'percentunit',
          steps: from([0.1, 'yellow'], [0.5, 'red']),
          alert: 'SlidegateDenialsHigh',
          queries: [
            {
              expr: `(${total('slidegate_decisions_total', `${OF}, outcome="denied"`)} or vector(0)) / ${decisions}`,
            },
          ],
        }),
        number({
          title: 'Callers',
          description: 'Distinct keys in the last few minutes, estimated.',
          alert: 'SlidegateManyCallers',
          queries: [{ expr: `max(slidegate_distinct_callers{${OF}})` }],
        }),
        number({
          title: 'Share of the busiest caller',
          description: "The busiest key's share of all requests. To see the key, run slidegate top LIMITER.",
          unit: 'percentunit',
          steps: from([0.25, 'yellow'], [0.5, 'red']),
          alert: 'SlidegateOneCallerDominates',
          queries: [{ expr: `max(slidegate_top_caller_ratio{${OF}})` }],
        }),
        number({
          title: 'Waiting',
          description: 'Requests that are waiting.',
          steps: from([100, 'yellow'], [1000, 'red']),
          alert: 'SlidegateQueueLong',
          queries: [{ expr: `sum(slidegate_queue_length{${OF}})` }],
        }),
        number({
          title: 'Store',
          description: 'Whether the circuit breaker is open in any instance.',
          words: { 0: ['up', 'green'], 1: ['breaker open', 'red'] },
          alert: 'SlidegateStoreDown',
          queries: [{ expr: `max(slidegate_store_down{${OF}})` }],
        }),
      ],
    },
    {
      title: 'Decisions',
      panels: [
        lines({
          title: 'Allowed and denied',
          description: 'All requests, by outcome.',
          unit: 'reqps',
          stacked: true,
          queries: [{ expr: rate('slidegate_decisions_total', 'outcome'), legend: '{{outcome}}' }],
        }),
        lines({
          title: 'Decisions by source',
          description:
            'store: decided by the store. lease and denyCache: decided without a store call. fallback, failOpen and failClosed: decided while the store was unavailable.',
          unit: 'reqps',
          stacked: true,
          queries: [{ expr: rate('slidegate_decisions_total', 'source'), legend: '{{source}}' }],
        }),
        lines({
          title: 'Denials by limit',
          description:
            'Requests denied by each enforced limit. If several limits deny a request, it counts for each.',
          unit: 'reqps',
          alert: 'SlidegateDenialsUnusual',
          queries: [{ expr: rate('slidegate_limit_denials_total', 'limit', OF_LIMIT), legend: '{{limit}}' }],
        }),
        lines({
          title: 'Blocked and banned',
          description: 'Requests with blocked keys, and denials that started a ban.',
          unit: 'reqps',
          queries: [
            { expr: total('slidegate_blocked_requests_total'), legend: 'requests of blocked keys' },
            { expr: total('slidegate_bans_total'), legend: 'bans' },
          ],
        }),
      ],
    },
    {
      title: 'Limit usage: abuse, or a limit set too low?',
      panels: [
        heatmap({
          title: 'Usage after each request',
          description:
            'Requests, by the share of the limit that their key had used. If there is a band at the top and few callers, these callers send too many requests. If there is a band at the top and many callers, the limit is too low. If all requests are at the bottom, the limit has no effect.',
          unit: 'percentunit',
          alert: 'SlidegateCallersNearLimit',
          queries: [
            { expr: rate('slidegate_limit_utilization_ratio_bucket', 'le', OF_LIMIT), legend: '{{le}}' },
          ],
        }),
        lines({
          title: 'Usage by limit',
          description: 'Share of each limit in use after a request: median and 90th percentile.',
          unit: 'percentunit',
          max: 1,
          steps: from([0.8, 'red']),
          queries: [0.5, 0.9].map((quantile) => ({
            expr: quantileOf(quantile, 'slidegate_limit_utilization_ratio', OF_LIMIT, 'limit, le'),
            legend: `{{limit}} p${quantile * 100}`,
          })),
        }),
        lines({
          title: 'Admitted near the limit',
          description: 'Share of admitted requests that left at least 80% of the limit used.',
          unit: 'percentunit',
          max: 1,
          steps: from([0.5, 'red']),
          alert: 'SlidegateCallersNearLimit',
          queries: [
            {
              expr: `${rate('slidegate_near_limit_total', 'limit', OF_LIMIT)} / on () group_left ${total('slidegate_decisions_total', `${OF}, outcome="allowed"`)}`,
              legend: '{{limit}}',
            },
          ],
        }),
        lines({
          title: 'Callers',
          description: 'Distinct keys in the last few minutes, estimated.',
          size: [6, 8],
          alert: 'SlidegateManyCallers',
          queries: [{ expr: `max(slidegate_distinct_callers{${OF}})`, legend: 'callers' }],
        }),
        lines({
          title: 'Share of the busiest caller',
          description: "The busiest key's share of all requests.",
          unit: 'percentunit',
          max: 1,
          size: [6, 8],
          steps: from([0.5, 'red']),
          alert: 'SlidegateOneCallerDominates',
          queries: [{ expr: `max(slidegate_top_caller_ratio{${OF}})`, legend: 'busiest caller' }],
        }),
      ],
    },
    {
      title: 'Shadow limits',
      panels: [
        lines({
          title: 'Denials by shadow limits',
          description: 'Requests that shadow limits would have denied.',
          unit: 'reqps',
          alert: 'SlidegateShadowLimitWouldDeny',
          queries: [
            { expr: rate('slidegate_limit_shadow_denials_total', 'limit', OF_LIMIT), legend: '{{limit}}' },
          ],
        }),
        lines({
          title: 'Share of denials by shadow limits',
          description: 'Requests that shadow limits would have denied, as a share of all requests.',
          unit: 'percentunit',
          max: 1,
          steps: from([0.05, 'yellow']),
          alert: 'SlidegateShadowLimitWouldDeny',
          queries: [
            {
              expr: `${rate('slidegate_limit_shadow_denials_total', 'limit', OF_LIMIT)} / on () group_left ${decisions}`,
              legend: '{{limit}}',
            },
          ],
        }),
      ],
    },
    {
      title: 'Queue',
      panels: [
        lines({
          title: 'Queue length',
          description: 'Waiting requests, by instance.',
          size: [8, 8],
          alert: 'SlidegateQueueLong',
          queries: [{ expr: `sum by (instance) (slidegate_queue_length{${OF}})`, legend: '{{instance}}' }],
        }),
        lines({
          title: 'Waiting time',
          description: 'Waiting time of admitted requests.',
          unit: 's',
          size: [8, 8],
          queries: [0.5, 0.99].map((quantile) => ({
            expr: quantileOf(quantile, 'slidegate_wait_duration_seconds', OF, 'le'),
            legend: `p${quantile * 100}`,
          })),
        }),
        lines({
          title: 'Failed waits',
          description: 'Failed waiting requests, by reason: timeout, full queue, or disconnected caller.',
          unit: 'reqps',
          size: [8, 8],
          alert: 'SlidegateWaitsFail',
          queries: [{ expr: rate('slidegate_wait_errors_total', 'reason'), legend: '{{reason}}' }],
        }),
      ],
    },
    {
      title: 'Health',
      panels: [
        lines({
          title: 'Store errors',
          description: 'Requests without a response from the store, by reason. Normally empty.',
          unit: 'reqps',
          size: [8, 8],
          alert: 'SlidegateStoreErrors',
          queries: [{ expr: rate('slidegate_store_errors_total', 'reason'), legend: '{{reason}}' }],
        }),
        states({
          title: 'Circuit breaker',
          description:
            'While the breaker is open, the instance does not call the store, except to check for recovery.',
          size: [8, 8],
          words: { 0: ['closed', 'green'], 1: ['open', 'red'] },
          alert: 'SlidegateStoreDown',
          queries: [{ expr: `max by (instance) (slidegate_store_down{${OF}})`, legend: '{{instance}}' }],
        }),
        lines({
          title: 'Breaker openings and clock steps',
          description: 'Circuit breaker openings, and changes of the server clock, within five minutes.',
          size: [8, 8],
          alert: 'SlidegateClockStep',
          queries: [
            { expr: `sum(increase(slidegate_store_breaker_opened_total{${OF}}[5m]))`, legend: 'opened' },
            { expr: `max(increase(slidegate_store_clock_steps_total{${OF}}[5m]))`, legend: 'clock steps' },
          ],
        }),
      ],
    },
  ],
})
