/** A plot as plain data, stored with the results. */
export type Plot = BarPlot | LinePlot

/** slidegate, a side that it is compared with, or a floor. */
export type Role = 'ours' | 'peer' | 'floor'

interface Titled {
  /** File name without its extension: unique, only `a-z 0-9 -`. */
  readonly name: string
  readonly title: string
  /** A line below the plot that explains it. */
  readonly note?: string
}

interface Axis {
  /** The label with its unit: `Redis CPU per decision, µs`. */
  readonly label: string
  /** Default: linear from 0. */
  readonly isLog?: boolean
}

/** A horizontal bar per side, or per side and series. */
export interface BarPlot extends Titled {
  readonly kind: 'bars'
  readonly axis: Axis
  /** Names of the series. A single series has the name ''. */
  readonly series: readonly string[]
  /** They are sorted by their first value when drawn. */
  readonly bars: readonly Bar[]
  /** A reference value, drawn as a line. */
  readonly mark?: { readonly label: string; readonly value: number }
}

export interface Bar {
  readonly label: string
  /** One value per series, or `null` if it doesn't apply. */
  readonly values: readonly (number | null)[]
  readonly role?: Role
}

/** Lines over a numeric axis. */
export interface LinePlot extends Titled {
  readonly kind: 'lines'
  readonly x: Axis
  readonly y: Axis
  readonly lines: readonly Line[]
}

export interface Line {
  readonly label: string
  readonly role?: Role
  readonly points: readonly (readonly [x: number, y: number])[]
}
