import { dashboard, from, lines, number, table } from './grafana.js'

const RATE = '$__rate_interval'
const WITHOUT_STORE = 'source=~"fallback|failOpen|failClosed"'
const toLimiter = {
  title: 'This limiter',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: of Grafana
  url: '/d/slidegate-limiter?var-limiter=${__value.text:percentencode}&var-datasource=$datasource&$__url_time_range',
}

/** @param {string} metric with its labels @param {string} labels */
const rate = (metric, labels, over = RATE) => `sum by (${labels}) (rate(${metric}[${over}]))`

/** Share of the requests of each limiter, over the whole range that is shown. @param {string} metric @param {string} [outcome] */
const worstShare = (metric, outcome = '') =>
  `max by (limiter) (${rate(metric, 'limiter, limit', '$__range')}) / ${rate(`slidegate_decisions_total${outcome}`, 'limiter', '$__range')}`

export const overview = dashboard({
  uid: 'slidegate-overview',
  title: 'slidegate: overview',
  description:
    'Who is limited, by which limit, whether that is abuse or a limit set too low, and whether the limiter is healthy.',
  rows: [
    {
      title: 'Now',
      panels: [
        number({
          title: 'Decisions',
          description: 'Requests that were decided, of all limiters and instances.',
          unit: 'reqps',
          queries: [{ expr: `sum(rate(slidegate_decisions_total[${RATE}]))` }],
        }),
        number({
          title: 'Denied',
          description: 'Share of them that was denied.',
          unit: 'percentunit',
          steps: from([0.1, 'yellow'], [0.5, 'red']),
          alert: 'SlidegateDenialsHigh',
          queries: [
            {
              expr: `(sum(rate(slidegate_decisions_total{outcome="denied"}[${RATE}])) or vector(0)) / sum(rate(slidegate_decisions_total[${RATE}]))`,
            },
          ],
        }),
        number({
          title: 'Decided without the store',
          description:
            'Share that was decided by onStoreError, since the store gave no answer. Healthy: none.',
          unit: 'percentunit',
          steps: from([0.0001, 'yellow'], [0.01, 'red']),
          alert: 'SlidegateStoreErrors',
          queries: [
            {
              expr: `(sum(rate(slidegate_decisions_total{${WITHOUT_STORE}}[${RATE}])) or vector(0)) / sum(rate(slidegate_decisions_total[${RATE}]))`,
            },
          ],
        }),
        number({
          title: 'Instances down',
          description: 'Instances that Prometheus cannot reach.',
          steps: from([1, 'red']),
          alert: 'SlidegateInstanceDown',
          queries: [{ expr: 'count(up{job="slidegate"} == 0) or vector(0)' }],
        }),
        number({
          title: 'Configuration',
          description:
            'Whether the configuration in the file is in force everywhere, or wrong, and the one before it is.',
          words: { 0: ['wrong', 'red'], 1: ['in force', 'green'] },
          alert: 'SlidegateConfigInvalid',
          queries: [{ expr: 'min(slidegate_config_valid)' }],
        }),
        number({
          title: 'Alerts',
          description: 'Alerts of slidegate that fire now.',
          steps: from([1, 'red']),
          queries: [{ expr: 'count(ALERTS{alertname=~"Slidegate.+", alertstate="firing"}) or vector(0)' }],
        }),
      ],
    },
    {
      title: 'Who is limited, and by which limit',
      panels: [
        lines({
          title: 'Decisions',
          description: 'Allowed and denied, of all limiters.',
          unit: 'reqps',
          stacked: true,
          queries: [{ expr: rate('slidegate_decisions_total', 'outcome'), legend: '{{outcome}}' }],
        }),
        lines({
          title: 'Denied, by limiter',
          description: 'Denied requests of each limiter.',
          unit: 'reqps',
          alert: 'SlidegateDenialsUnusual',
          queries: [
            {
              expr: `${rate('slidegate_decisions_total{outcome="denied"}', 'limiter')} > 0`,
              legend: '{{limiter}}',
            },
          ],
        }),
        lines({
          title: 'Limits that had no room',
          description:
            'The ten limits that deny most. A request that several limits refuse counts for each of them.',
          unit: 'reqps',
          queries: [
            {
              expr: `topk(10, ${rate('slidegate_limit_denials_total', 'limiter, limit')} > 0)`,
              legend: '{{limiter}} {{limit}}',
            },
          ],
        }),
        lines({
          title: 'Share denied, by limiter',
          description: 'Of all requests of a limiter, how many it denies.',
          unit: 'percentunit',
          max: 1,
          steps: from([0.5, 'red']),
          alert: 'SlidegateDenialsHigh',
          queries: [
            {
              expr: `${rate('slidegate_decisions_total{outcome="denied"}', 'limiter')} / ${rate('slidegate_decisions_total', 'limiter')}`,
              legend: '{{limiter}}',
            },
          ],
        }),
      ],
    },
    {
      title: 'Abuse, or a limit set too low?',
      panels: [
        table({
          title: 'Limiters',
          description:
            'Over the range that is shown. Much is denied, and the busiest caller has most of the requests: abuse by one. Much is denied, and there are far more callers than usual: an attack that is spread. Much is near the limit, by many callers, each with little: the limit is too low.',
          by: 'limiter',
          link: toLimiter,
          alert: 'SlidegateCallersNearLimit',
          columns: [
            {
              name: 'requests',
              unit: 'reqps',
              expr: rate('slidegate_decisions_total', 'limiter', '$__range'),
            },
            {
              name: 'denied',
              unit: 'percentunit',
              steps: from([0.1, 'yellow'], [0.5, 'red']),
              expr: `${rate('slidegate_decisions_total{outcome="denied"}', 'limiter', '$__range')} / ${rate('slidegate_decisions_total', 'limiter', '$__range')}`,
            },
            {
              name: 'admitted near the limit',
              unit: 'percentunit',
              steps: from([0.25, 'yellow'], [0.5, 'red']),
              expr: worstShare('slidegate_near_limit_total', '{outcome="allowed"}'),
            },
            {
              name: 'half find it this full',
              unit: 'percentunit',
              steps: from([0.6, 'yellow'], [0.8, 'red']),
              expr: `max by (limiter) (histogram_quantile(0.5, ${rate('slidegate_limit_utilization_ratio_bucket', 'limiter, limit, le', '$__range')}))`,
            },
            { name: 'callers', expr: 'max by (limiter) (slidegate_distinct_callers)' },
            {
              name: 'share of the busiest',
              unit: 'percentunit',
              steps: from([0.25, 'yellow'], [0.5, 'red']),
              expr: 'max by (limiter) (slidegate_top_caller_ratio)',
            },
            {
              name: 'shadow limits would deny',
              unit: 'percentunit',
              steps: from([0.05, 'yellow']),
              expr: worstShare('slidegate_limit_shadow_denials_total'),
            },
          ],
        }),
        lines({
          title: 'Callers',
          description:
            'Different keys of the last minutes, estimated. Far more than usual: an attack that is spread over many.',
          alert: 'SlidegateManyCallers',
          queries: [{ expr: 'max by (limiter) (slidegate_distinct_callers)', legend: '{{limiter}}' }],
        }),
        lines({
          title: 'Share of the busiest caller',
          description:
            'Share of the requests of a limiter that its busiest key makes. Who it is: slidegate top LIMITER.',
          unit: 'percentunit',
          max: 1,
          steps: from([0.5, 'red']),
          alert: 'SlidegateOneCallerDominates',
          queries: [{ expr: 'max by (limiter) (slidegate_top_caller_ratio)', legend: '{{limiter}}' }],
        }),
      ],
    },
    {
      title: 'Shadow limits',
      panels: [
        lines({
          title: 'Share that shadow limits would deny',
          description:
            'What a limit in shadow would do if it were enforced, as a share of the requests of its limiter.',
          unit: 'percentunit',
          steps: from([0.05, 'yellow']),
          alert: 'SlidegateShadowLimitWouldDeny',
          queries: [
            {
              expr: `${rate('slidegate_limit_shadow_denials_total', 'limiter, limit')} / on (limiter) group_left ${rate('slidegate_decisions_total', 'limiter')} > 0`,
              legend: '{{limiter}} {{limit}}',
            },
          ],
        }),
        lines({
          title: 'Blocked and banned',
          description: 'Requests of keys that were blocked before, and denials that brought a ban about.',
          unit: 'reqps',
          queries: [
            {
              expr: `${rate('slidegate_blocked_requests_total', 'limiter')} > 0`,
              legend: '{{limiter}} blocked',
            },
            { expr: `${rate('slidegate_bans_total', 'limiter')} > 0`, legend: '{{limiter}} bans' },
          ],
        }),
      ],
    },
    {
      title: 'Is the limiter itself healthy?',
      panels: [
        lines({
          title: 'Store: time of a call',
          description:
            'As the instances see it, from sending to the answer. A call that takes longer than timeoutMs, 50 ms unless told, is given up.',
          unit: 's',
          size: [8, 8],
          steps: from([0.025, 'red']),
          alert: 'SlidegateStoreSlow',
          queries: [0.5, 0.99].map((quantile) => ({
            expr: `histogram_quantile(${quantile}, ${rate('slidegate_store_call_duration_seconds_bucket', 'le')})`,
            legend: `p${quantile * 100}`,
          })),
        }),
        lines({
          title: 'Requests without an answer of the store',
          description: 'By reason. Healthy: none.',
          unit: 'reqps',
          size: [8, 8],
          alert: 'SlidegateStoreErrors',
          queries: [
            {
              expr: `${rate('slidegate_store_errors_total', 'limiter, reason')} > 0`,
              legend: '{{limiter}} {{reason}}',
            },
          ],
        }),
        lines({
          title: 'Event loop lag, p99',
          description:
            'How long a process is busy before it gets to the next task. Answers of the store that lie there count as late.',
          unit: 's',
          size: [8, 8],
          steps: from([0.1, 'red']),
          alert: 'SlidegateEventLoopLag',
          queries: [{ expr: 'nodejs_eventloop_lag_p99_seconds{job="slidegate"}', legend: '{{instance}}' }],
        }),
      ],
    },
  ],
})
