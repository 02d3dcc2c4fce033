import { dashboard, from, lines, number, table } from './grafana.js'

const RATE = '$__rate_interval'
const WITHOUT_STORE = 'source=~"fallback|failOpen|failClosed"'
const toLimiter = {
  title: 'This limiter',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a Grafana variable
  url: '/d/slidegate-limiter?var-limiter=${__value.text:percentencode}&var-datasource=$datasource&$__url_time_range',
}

/** @param {string} metric with its labels @param {string} labels */
const rate = (metric, labels, over = RATE) => `sum by (${labels}) (rate(${metric}[${over}]))`

/** The highest rate of a metric by limit, as a share of requests. @param {string} metric @param {string} [outcome] */
const worstShare = (metric, outcome = '') =>
  `max by (limiter) (${rate(metric, 'limiter, limit', '$__range')}) / ${rate(`slidegate_decisions_total${outcome}`, 'limiter', '$__range')}`

export const overview = dashboard({
  uid: 'slidegate-overview',
  title: 'slidegate: overview',
  description:
    'Denials by limiter and limit, signs of abuse or of limits that are too low, and the health of the service.',
  rows: [
    {
      title: 'Now',
      panels: [
        number({
          title: 'Decisions',
          description: 'Decisions per second of all limiters and instances.',
          unit: 'reqps',
          queries: [{ expr: `sum(rate(slidegate_decisions_total[${RATE}]))` }],
        }),
        number({
          title: 'Denied',
          description: 'Share of denied requests.',
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
            'Share of requests decided by onStoreError because the store was unavailable. Normally 0.',
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
            'If invalid, an instance has rejected the configuration file and keeps the previous configuration.',
          words: { 0: ['invalid', 'red'], 1: ['valid', 'green'] },
          alert: 'SlidegateConfigInvalid',
          queries: [{ expr: 'min(slidegate_config_valid)' }],
        }),
        number({
          title: 'Alerts',
          description: 'Firing slidegate alerts.',
          steps: from([1, 'red']),
          queries: [{ expr: 'count(ALERTS{alertname=~"Slidegate.+", alertstate="firing"}) or vector(0)' }],
        }),
      ],
    },
    {
      title: 'Denials',
      panels: [
        lines({
          title: 'Decisions',
          description: 'Allowed and denied requests of all limiters.',
          unit: 'reqps',
          stacked: true,
          queries: [{ expr: rate('slidegate_decisions_total', 'outcome'), legend: '{{outcome}}' }],
        }),
        lines({
          title: 'Denied, by limiter',
          description: 'Denied requests per limiter.',
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
          title: 'Denials by limit',
          description:
            'The ten limits with the most denials. If several limits deny a request, it counts for each.',
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
          description: "Share of each limiter's requests that are denied.",
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
            'Over the time range. If there are many denials and one caller makes most of the requests, that caller is abusive. If there are many denials and far more callers than usual, this may be a distributed attack. If many requests are near the limit and callers make few requests each, the limit is too low.',
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
              name: 'median usage',
              unit: 'percentunit',
              steps: from([0.6, 'yellow'], [0.8, 'red']),
              expr: `max by (limiter) (histogram_quantile(0.5, ${rate('slidegate_limit_utilization_ratio_bucket', 'limiter, limit, le', '$__range')}))`,
            },
            { name: 'callers', expr: 'max by (limiter) (slidegate_distinct_callers)' },
            {
              name: 'busiest caller',
              unit: 'percentunit',
              steps: from([0.25, 'yellow'], [0.5, 'red']),
              expr: 'max by (limiter) (slidegate_top_caller_ratio)',
            },
            {
              name: 'shadow denials',
              unit: 'percentunit',
              steps: from([0.05, 'yellow']),
              expr: worstShare('slidegate_limit_shadow_denials_total'),
            },
          ],
        }),
        lines({
          title: 'Callers',
          description:
            'Distinct keys in the last few minutes, estimated. If there are far more than usual, this may be a distributed attack.',
          alert: 'SlidegateManyCallers',
          queries: [{ expr: 'max by (limiter) (slidegate_distinct_callers)', legend: '{{limiter}}' }],
        }),
        lines({
          title: 'Share of the busiest caller',
          description:
            "Requests of the busiest key, as a share of the limiter's requests. To see the key: slidegate top LIMITER.",
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
          title: 'Share of denials by shadow limits',
          description:
            "Requests that a shadow limit would have denied, as a share of its limiter's requests.",
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
          description: 'Requests with blocked keys, and denials that started a ban.',
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
      title: 'Health',
      panels: [
        lines({
          title: 'Store call duration',
          description:
            'Measured by the instances, from request to response. Calls time out after timeoutMs, 50 ms by default.',
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
          title: 'Store errors',
          description: 'Requests without a response from the store, by reason. Normally empty.',
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
            'How long a task waits in a busy process. The lag adds to the duration of store calls.',
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
