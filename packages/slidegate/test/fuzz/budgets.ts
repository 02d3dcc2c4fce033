interface Budget {
  /** The inputs of a normal run, which takes one or two seconds. */
  readonly usual: number
  /** This target's share of the inputs of a long run. Targets with cheaper inputs have a larger share. */
  readonly share: number
}

/** The number of inputs per target. */
export const BUDGETS = {
  'calls on memory': { usual: 400, share: 90 },
  'calls on Redis': { usual: 80, share: 15 },
  'shown values': { usual: 1000, share: 50 },
  'declared limits': { usual: 500, share: 120 },
  'limits on Redis': { usual: 100, share: 10 },
  'limits as JSON': { usual: 500, share: 40 },
  'override rules': { usual: 150, share: 15 },
  'limiter options': { usual: 300, share: 60 },
  'store options': { usual: 150, share: 25 },
  'count options': { usual: 300, share: 20 },
  'guard options': { usual: 500, share: 40 },
  'Redis URLs': { usual: 300, share: 20 },
  addresses: { usual: 1000, share: 100 },
  'invalid addresses': { usual: 500, share: 30 },
  'forwarded addresses': { usual: 1000, share: 70 },
  'caller keys': { usual: 500, share: 30 },
  'address options': { usual: 300, share: 20 },
  'log lines': { usual: 1000, share: 100 },
  'log files': { usual: 80, share: 15 },
  'damaged gzip': { usual: 20, share: 5 },
  'command line arguments': { usual: 500, share: 40 },
  responses: { usual: 500, share: 30 },
  'stored bytes': { usual: 200, share: 25 },
  'replies from Redis': { usual: 200, share: 20 },
  'raw bytes from Redis': { usual: 40, share: 2 },
} as const satisfies Record<string, Budget>

export type TargetName = keyof typeof BUDGETS
