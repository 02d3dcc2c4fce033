// Grafana dashboards in the classic JSON model: https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/

/** URL of docs/. Set your own here and in deploy/prometheus/alerts.yaml. */
const DOCS = 'https://slidegate.example/docs'

const DATASOURCE = { type: 'prometheus', uid: '$datasource' }

/**
 * @typedef {{ color: string, value: number | null }} Step
 * @typedef {{ expr: string, legend?: string }} Query
 * @typedef {Record<string, unknown>} Json
 * @typedef {object} PanelOptions
 * @property {string} title
 * @property {string} description the meaning of the values
 * @property {readonly Query[]} queries
 * @property {string} [unit]
 * @property {readonly Step[]} [steps] colors from a value on
 * @property {readonly [width: number, height: number]} [size] width in 24ths
 * @property {string} [alert] the alert to link to
 * @property {number} [max]
 */

/** Colors that apply from a value upwards. Below the lowest value, the color is green. @param {...[number, string]} steps */
export function from(...steps) {
  return [{ color: 'green', value: null }, ...steps.map(([value, color]) => ({ color, value }))]
}

/**
 * @param {PanelOptions} options
 * @param {string} type
 * @param {readonly [number, number]} usualSize
 * @param {(query: Query) => Json} [more] further properties of its queries
 */
function panel(
  { title, description, queries, unit = 'short', steps, size, alert, max },
  type,
  usualSize,
  more,
) {
  const [w, h] = size ?? usualSize
  return {
    type,
    title,
    description,
    datasource: DATASOURCE,
    gridPos: { x: 0, y: 0, w, h },
    links:
      alert === undefined
        ? []
        : [{ title: 'What to do', url: `${DOCS}/alerts.md#${alert.toLowerCase()}`, targetBlank: true }],
    targets: queries.map((query, i) => ({
      refId: String.fromCharCode(65 + i),
      datasource: DATASOURCE,
      expr: query.expr,
      legendFormat: query.legend ?? '__auto',
      ...more?.(query),
    })),
    fieldConfig: {
      defaults: {
        unit,
        min: 0,
        ...(max !== undefined && { max }),
        thresholds: { mode: 'absolute', steps: steps ?? from() },
      },
      overrides: /** @type {Json[]} */ ([]),
    },
  }
}

const LEGEND = {
  displayMode: 'table',
  placement: 'bottom',
  showLegend: true,
  calcs: ['mean', 'max', 'lastNotNull'],
}

const COLOURS = { allowed: 'green', denied: 'red', failOpen: 'orange', failClosed: 'red', fallback: 'yellow' }

/**
 * Lines over time. With `steps`, there is also a line per threshold.
 *
 * @param {PanelOptions & { stacked?: boolean }} options
 */
export function lines({ stacked = false, ...options }) {
  const made = panel(options, 'timeseries', [12, 8])
  Object.assign(made.fieldConfig.defaults, {
    color: { mode: 'palette-classic' },
    custom: {
      drawStyle: 'line',
      lineInterpolation: 'linear',
      lineWidth: 1,
      fillOpacity: stacked ? 40 : 8,
      showPoints: 'auto',
      spanNulls: false,
      stacking: { mode: stacked ? 'normal' : 'none', group: 'A' },
      thresholdsStyle: { mode: options.steps === undefined ? 'off' : 'dashed' },
    },
  })
  made.fieldConfig.overrides = Object.entries(COLOURS).map(([name, fixedColor]) => ({
    matcher: { id: 'byName', options: name },
    properties: [{ id: 'color', value: { mode: 'fixed', fixedColor } }],
  }))
  return { ...made, options: { legend: LEGEND, tooltip: { mode: 'multi', sort: 'desc' } } }
}

/**
 * The current value, on a background with its color.
 *
 * @param {PanelOptions & { words?: Readonly<Record<string, readonly [text: string, color: string]>> }} options `words` replace values
 */
export function number({ words, ...options }) {
  const made = panel(options, 'stat', [4, 4])
  Object.assign(made.fieldConfig.defaults, {
    color: { mode: 'thresholds' },
    ...(words && { mappings: mappingsOf(words) }),
  })
  return {
    ...made,
    options: {
      colorMode: options.steps === undefined && words === undefined ? 'none' : 'background',
      graphMode: words === undefined ? 'area' : 'none',
      justifyMode: 'auto',
      orientation: 'auto',
      textMode: 'auto',
      wideLayout: true,
      reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
    },
  }
}

/**
 * A histogram over time.
 *
 * @param {PanelOptions} options
 */
export function heatmap(options) {
  return {
    ...panel({ ...options }, 'heatmap', [12, 8], () => ({ format: 'heatmap' })),
    options: {
      calculate: false,
      cellGap: 1,
      color: {
        mode: 'scheme',
        scheme: 'Oranges',
        fill: 'dark-orange',
        scale: 'exponential',
        exponent: 0.5,
        steps: 64,
        reverse: false,
      },
      exemplars: { color: 'rgba(255,0,255,0.7)' },
      filterValues: { le: 1e-9 },
      legend: { show: true },
      rowsFrame: { layout: 'auto' },
      tooltip: { mode: 'single', yHistogram: true, showColorScale: false },
      yAxis: { axisPlacement: 'left', reverse: false, unit: options.unit },
    },
  }
}

/**
 * States over time, in rows.
 *
 * @param {PanelOptions & { words: Readonly<Record<string, readonly [text: string, color: string]>> }} options
 */
export function states({ words, ...options }) {
  const made = panel(options, 'state-timeline', [12, 8])
  Object.assign(made.fieldConfig.defaults, { color: { mode: 'thresholds' }, mappings: mappingsOf(words) })
  return {
    ...made,
    options: {
      mergeValues: true,
      showValue: 'never',
      alignValue: 'left',
      rowHeight: 0.9,
      legend: { displayMode: 'list', placement: 'bottom', showLegend: true, calcs: [] },
      tooltip: { mode: 'single', sort: 'none' },
    },
  }
}

/** @param {Readonly<Record<string, readonly [text: string, color: string]>>} words */
function mappingsOf(words) {
  const options = Object.entries(words).map(([value, [text, color]], index) => [
    value,
    { text, color, index },
  ])
  return [{ type: 'value', options: Object.fromEntries(options) }]
}

/**
 * @typedef {{ name: string, expr: string, unit?: string, steps?: readonly Step[] }} Column
 * @typedef {Omit<PanelOptions, 'queries' | 'unit' | 'steps'> & { by: string, link?: Json, columns: readonly Column[] }} TableOptions
 */

/**
 * A row per value of a label, and a column per query.
 *
 * @param {TableOptions} options
 */
export function table({ by, link, columns, ...options }) {
  const queries = columns.map(({ expr }) => ({ expr }))
  const made = panel({ ...options, queries }, 'table', [24, 8], () => ({
    format: 'table',
    instant: true,
    range: false,
  }))
  const refs = columns.map(
    ({ name }, i) => /** @type {const} */ ([`Value #${String.fromCharCode(65 + i)}`, name]),
  )
  made.fieldConfig.overrides = columns.map(({ name, unit = 'short', steps }) => ({
    matcher: { id: 'byName', options: name },
    properties: [
      { id: 'unit', value: unit },
      ...(steps === undefined
        ? []
        : [
            { id: 'thresholds', value: { mode: 'absolute', steps } },
            { id: 'custom.cellOptions', value: { type: 'color-background', mode: 'basic' } },
          ]),
    ],
  }))
  if (link !== undefined) {
    made.fieldConfig.overrides.push({
      matcher: { id: 'byName', options: by },
      properties: [{ id: 'links', value: [link] }],
    })
  }
  Object.assign(made.fieldConfig.defaults, {
    color: { mode: 'thresholds' },
    custom: { align: 'auto', inspect: false },
  })
  return {
    ...made,
    transformations: [
      { id: 'merge', options: {} },
      {
        id: 'organize',
        options: {
          excludeByName: { Time: true },
          indexByName: Object.fromEntries([[by, 0], ...refs.map(([ref], i) => [ref, i + 1])]),
          renameByName: Object.fromEntries(refs),
        },
      },
    ],
    options: { showHeader: true, cellHeight: 'sm', sortBy: [{ displayName: columns[0]?.name, desc: true }] },
  }
}

/**
 * A drop-down with the values of a label.
 *
 * @param {string} name
 * @param {string} query
 * @param {{ label: string, all?: boolean }} options
 */
export function variable(name, query, { label, all = false }) {
  return {
    type: 'query',
    name,
    label,
    datasource: DATASOURCE,
    definition: query,
    query: { query, refId: 'variable' },
    // Reload when the time range changes, so that old values disappear.
    refresh: 2,
    sort: 1,
    hide: 0,
    multi: all,
    includeAll: all,
    ...(all && { current: { text: ['All'], value: ['$__all'] } }),
  }
}

/**
 * @typedef {ReturnType<typeof panel> & { options: Json }} Panel
 * @param {{ uid: string, title: string, description: string, variables?: readonly Json[],
 *   rows: readonly { readonly title: string, readonly panels: readonly Panel[] }[] }} options
 */
export function dashboard({ uid, title, description, variables = [], rows }) {
  return {
    uid,
    title,
    description,
    tags: ['slidegate'],
    schemaVersion: 41,
    editable: true,
    graphTooltip: 1,
    refresh: '30s',
    time: { from: 'now-1h', to: 'now' },
    timezone: 'browser',
    links: [
      {
        ...LINK,
        type: 'dashboards',
        title: 'slidegate',
        tags: ['slidegate'],
        includeVars: true,
        keepTime: true,
      },
      {
        ...LINK,
        type: 'link',
        title: 'What to do',
        icon: 'doc',
        url: `${DOCS}/alerts.md`,
        targetBlank: true,
      },
    ],
    annotations: {
      list: [
        annotation('Alerts', 'ALERTS{alertname=~"Slidegate.+", alertstate="firing"}', 'red', '{{alertname}}'),
        annotation(
          'Configuration reloaded',
          'sum by (result) (increase(slidegate_config_reloads_total[$__rate_interval])) > 0',
          'blue',
          'configuration: {{result}}',
        ),
      ],
    },
    templating: {
      list: [
        {
          type: 'datasource',
          name: 'datasource',
          label: 'Prometheus',
          query: 'prometheus',
          hide: 0,
          refresh: 1,
        },
        ...variables,
      ],
    },
    panels: placed(rows),
  }
}

const LINK = {
  asDropdown: false,
  icon: 'external link',
  includeVars: false,
  keepTime: false,
  tags: /** @type {string[]} */ ([]),
  targetBlank: false,
  tooltip: '',
  url: '',
}

/** @param {string} name @param {string} expr @param {string} iconColor @param {string} titleFormat */
function annotation(name, expr, iconColor, titleFormat) {
  const target = { refId: 'Anno', expr, interval: '1m' }
  return { name, enable: true, hide: false, datasource: DATASOURCE, iconColor, target, titleFormat }
}

/**
 * Numbers panels and lays them out, row by row.
 *
 * @param {Parameters<typeof dashboard>[0]['rows']} rows
 */
function placed(rows) {
  let id = 0
  let y = 0
  return rows.flatMap(({ title, panels }) => {
    const heading = {
      id: ++id,
      type: 'row',
      title,
      collapsed: false,
      gridPos: { x: 0, y: y++, w: 24, h: 1 },
      panels: [],
    }
    let x = 0
    let lineHeight = 0
    const laid = panels.map((each) => {
      const { w, h } = each.gridPos
      if (x + w > 24) {
        y += lineHeight
        x = 0
        lineHeight = 0
      }
      const one = { ...each, id: ++id, gridPos: { x, y, w, h } }
      x += w
      lineHeight = Math.max(lineHeight, h)
      return one
    })
    y += lineHeight
    return [heading, ...laid]
  })
}
