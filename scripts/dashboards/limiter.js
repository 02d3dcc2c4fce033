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
  description:
    'How full its limits are, what it denies, by whose requests, and what its shadow limits would do.',
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
          description: 'Requests that were decided.',
          unit: 'reqps',
          queries: [{ expr: decisions }],
        }),
        number({
          title: 'Denied',
          description: 'Share of them that was denied.',
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
          description: 'Different keys of the last minutes, estimated.',
          alert: 'SlidegateManyCallers',
          queries: [{ expr: `max(slidegate_distinct_callers{${OF}})` }],
        }),
        number({
          title: 'Share of the busiest caller',
          description: 'Share of the requests that the busiest key makes. Who it is: slidegate top LIMITER.',
          unit: 'percentunit',
          steps: from([0.25, 'yellow'], [0.5, 'red']),
          alert: 'SlidegateOneCallerDominates',
          queries: [{ expr: `max(slidegate_top_caller_ratio{${OF}})` }],
        }),
        number({
          title: 'Waiting',
          description: 'Requests that wait in line for room.',
          steps: from([100, 'yellow'], [1000, 'red']),
          alert: 'SlidegateQueueLong',
          queries: [{ expr: `sum(slidegate_queue_length{${OF}})` }],
        }),
        number({
          title: 'Store',
          description: 'Whether the store is asked, or its breaker is open in some instance.',
          words: { 0: ['asked', 'green'], 1: ['breaker open', 'red'] },
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
          description: 'All requests, by what they were told.',
          unit: 'reqps',
          stacked: true,
          queries: [{ expr: rate('slidegate_decisions_total', 'outcome'), legend: '{{outcome}}' }],
        }),
        lines({
          title: 'Who has decided',
          description:
            'The store; what was leased from it or remembered of its denials, which spares a call; or, while it gave no answer, the policy: fallback, failOpen, failClosed.',
          unit: 'reqps',
          stacked: true,
          queries: [{ expr: rate('slidegate_decisions_total', 'source'), legend: '{{source}}' }],
        }),
        lines({
          title: 'Limits that had no room',
          description:
            'Requests that each enforced limit has refused. One that several refuse counts for each.',
          unit: 'reqps',
          alert: 'SlidegateDenialsUnusual',
          queries: [{ expr: rate('slidegate_limit_denials_total', 'limit', OF_LIMIT), legend: '{{limit}}' }],
        }),
        lines({
          title: 'Blocked and banned',
          description: 'Requests of keys that were blocked before, and denials that brought a ban about.',
          unit: 'reqps',
          queries: [
            { expr: total('slidegate_blocked_requests_total'), legend: 'requests of blocked keys' },
            { expr: total('slidegate_bans_total'), legend: 'bans' },
          ],
        }),
      ],
    },
    {
      title: 'How full the limits are: abuse, or a limit set too low?',
      panels: [
        heatmap({
          title: 'How full it is once a request is decided',
          description:
            'Requests by the share of the limit that their key has used then. A band at the top, and few callers: these ask too much. One at the top, and many callers: the limit is too low for what they do. All at the bottom: it bounds nobody.',
          unit: 'percentunit',
          alert: 'SlidegateCallersNearLimit',
          queries: [
            { expr: rate('slidegate_limit_utilization_ratio_bucket', 'le', OF_LIMIT), legend: '{{le}}' },
          ],
        }),
        lines({
          title: 'How full each limit is',
          description: 'So full, or fuller, half of the requests and a tenth of them find the limit.',
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
          description: 'Share of the admitted requests after which 80% of the limit or more was used.',
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
          description: 'Different keys of the last minutes, estimated.',
          size: [6, 8],
          alert: 'SlidegateManyCallers',
          queries: [{ expr: `max(slidegate_distinct_callers{${OF}})`, legend: 'callers' }],
        }),
        lines({
          title: 'Share of the busiest caller',
          description: 'Share of the requests that the busiest key makes.',
          unit: 'percentunit',
          max: 1,
          size: [6, 8],
          steps: from([0.5, 'red']),
          alert: 'SlidegateOneCallerDominates',
          queries: [{ expr: `max(slidegate_top_caller_ratio{${OF}})`, legend: 'the busiest' }],
        }),
      ],
    },
    {
      title: 'Shadow limits',
      panels: [
        lines({
          title: 'Would be denied',
          description: 'Requests that a limit in shadow had no room for. Nobody was denied by it.',
          unit: 'reqps',
          alert: 'SlidegateShadowLimitWouldDeny',
          queries: [
            { expr: rate('slidegate_limit_shadow_denials_total', 'limit', OF_LIMIT), legend: '{{limit}}' },
          ],
        }),
        lines({
          title: 'Share that would be denied',
          description: 'The same, of all requests.',
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
      title: 'Waiting in line',
      panels: [
        lines({
          title: 'In line',
          description: 'Requests that wait for room, by instance.',
          size: [8, 8],
          alert: 'SlidegateQueueLong',
          queries: [{ expr: `sum by (instance) (slidegate_queue_length{${OF}})`, legend: '{{instance}}' }],
        }),
        lines({
          title: 'Time in line',
          description: 'Of those that were served.',
          unit: 's',
          size: [8, 8],
          queries: [0.5, 0.99].map((quantile) => ({
            expr: quantileOf(quantile, 'slidegate_wait_duration_seconds', OF, 'le'),
            legend: `p${quantile * 100}`,
          })),
        }),
        lines({
          title: 'Waits that failed',
          description: 'By reason: the time was over, the line was full, the caller had gone.',
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
          title: 'Requests without an answer of the store',
          description: 'By reason. Empty while all is well.',
          unit: 'reqps',
          size: [8, 8],
          alert: 'SlidegateStoreErrors',
          queries: [{ expr: rate('slidegate_store_errors_total', 'reason'), legend: '{{reason}}' }],
        }),
        states({
          title: 'Breaker',
          description: 'Whether an instance asks the store, or waits until it has recovered.',
          size: [8, 8],
          words: { 0: ['closed', 'green'], 1: ['open', 'red'] },
          alert: 'SlidegateStoreDown',
          queries: [{ expr: `max by (instance) (slidegate_store_down{${OF}})`, legend: '{{instance}}' }],
        }),
        lines({
          title: 'Breaker openings and clock steps',
          description:
            'How often within five minutes a breaker has opened, and the clock of the server was set.',
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
