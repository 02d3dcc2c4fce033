import { dashboards } from '../../../../scripts/dashboards/dashboards.js'

/** A Prometheus query of a panel, an annotation or a variable. */
export interface Question {
  /** Its place in the dashboard. */
  readonly where: string
  readonly expr: string
  /** Whether it is evaluated once rather than over time. */
  readonly instant: boolean
}

interface Target {
  readonly expr: string
  readonly instant?: boolean
}

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly description?: string
  readonly datasource?: { readonly uid: string }
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly links?: readonly { readonly url: string }[]
  readonly targets?: readonly Target[]
  readonly fieldConfig?: { readonly defaults: { readonly unit: string } }
}

export interface Variable {
  readonly type: string
  readonly name: string
  readonly multi?: boolean
  readonly definition?: string
}

export interface Dashboard {
  readonly uid: string
  readonly panels: readonly Panel[]
  readonly annotations: {
    readonly list: readonly { readonly name: string; readonly target: Target }[]
  }
  readonly templating: { readonly list: readonly Variable[] }
}

/** The dashboards by file name, without the extension. */
export const written = dashboards as unknown as Readonly<Record<string, Dashboard>>

export function panelsOf(dashboard: Dashboard): readonly Panel[] {
  return dashboard.panels.filter(({ type }) => type !== 'row')
}

export function questionsOf(dashboard: Dashboard): Question[] {
  return panelsOf(dashboard).flatMap(({ id, title, targets = [] }) =>
    targets.map(({ expr, instant = false }) => ({
      where: `${dashboard.uid} ${id}, ${title}`,
      expr,
      instant,
    })),
  )
}

/** Returns metric and label of `label_values(metric, label)`. */
export function labelAsked({ name, definition = '' }: Variable): readonly [metric: string, label: string] {
  const [, metric, label] = /^label_values\((.+), (\w+)\)$/.exec(definition) ?? []
  if (label === undefined) throw new Error(`${name} has an unsupported definition: ${definition}`)
  return [metric!, label]
}

/** Replaces `$name` with values, as Grafana does. Throws for unknown names. */
export function filled(text: string, values: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\$(\w+)/g, (_, name: string) => {
    const value = values[name]
    if (value === undefined) throw new Error(`unknown variable $${name}`)
    return value
  })
}

/** Returns a pattern for all values of a variable, as Grafana writes it. */
export function anyOf(values: readonly string[]): string {
  return `(${values.map((value) => value.replaceAll(/[$^*{}[\]'+?.()|]/g, '\\\\$&')).join('|')})`
}
