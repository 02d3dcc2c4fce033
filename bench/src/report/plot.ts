/** What a plot shows, as plain data: it is kept with the results, and drawn from them whenever the report is. */
export type Plot = BarPlot | LinePlot

/** What is ours, what is compared with it, and what no limiter can go below. */
export type Role = 'ours' | 'peer' | 'floor'

interface Titled {
  /** Of the file that it is drawn to: `a-z 0-9 -`, told from all others of the bench. */
  readonly name: string
  readonly title: string
  /** What should be known to read it; stands below it. */
  readonly note?: string
}

interface Axis {
  /** With the unit: `Redis CPU per decision, µs`. */
  readonly label: string
  /** Logarithmic; else the axis begins at 0. */
  readonly isLog?: boolean
}

/** One bar, lying, for each thing compared; or one for each series of each thing. */
export interface BarPlot extends Titled {
  readonly kind: 'bars'
  readonly axis: Axis
  /** Names of the series; one without a name where there is only one. */
  readonly series: readonly string[]
  /** Drawn in the order of their first value. */
  readonly bars: readonly Bar[]
  /** A value that all are to be compared with, as a line across. */
  readonly mark?: { readonly label: string; readonly value: number }
}

export interface Bar {
  readonly label: string
  /** One for each series; null where it does not apply. */
  readonly values: readonly (number | null)[]
  readonly role?: Role
}

/** How something grows. */
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
