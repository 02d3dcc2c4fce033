interface Budget {
  /** Inputs of a usual run: a second's worth or two. */
  readonly usual: number
  /** Of the inputs of the long form: the more, the less one costs. */
  readonly share: number
}

/** How many inputs each target is given. */
export const BUDGETS = {
  'calls on memory': { usual: 400, share: 90 },
  'calls on Redis': { usual: 80, share: 15 },
  'shown values': { usual: 1000, share: 50 },
  'declared limits': { usual: 500, share: 120 },
  'limits on Redis': { usual: 100, share: 10 },
  'limits as JSON': { usual: 500, share: 40 },
  'rules of overrides': { usual: 150, share: 15 },
  'options of limiters': { usual: 300, share: 60 },
  'options of stores': { usual: 150, share: 25 },
  'options of counts': { usual: 300, share: 20 },
  'options of guards': { usual: 500, share: 40 },
  'URLs of Redis': { usual: 300, share: 20 },
  addresses: { usual: 1000, share: 100 },
  'texts that are no addresses': { usual: 500, share: 30 },
  'forwarded addresses': { usual: 1000, share: 70 },
  'caller keys': { usual: 500, share: 30 },
  'options of addresses': { usual: 300, share: 20 },
  'lines of logs': { usual: 1000, share: 100 },
  'logs as files': { usual: 80, share: 15 },
  'damaged gzip': { usual: 20, share: 5 },
  'words of the command line': { usual: 500, share: 40 },
  responses: { usual: 500, share: 30 },
  'stored bytes': { usual: 200, share: 25 },
  'replies of Redis': { usual: 200, share: 20 },
  'bytes of Redis': { usual: 40, share: 2 },
} as const satisfies Record<string, Budget>

export type TargetName = keyof typeof BUDGETS
