/** What a stretch of load was. */
export interface Load {
  readonly requests: number
  readonly seconds: number
  /** CPU time of this process, all of its threads. */
  readonly clientCpuSeconds: number
}

/** When a load ends: after a time, or after a number of requests. */
export type Extent = { readonly ms: number } | { readonly requests: number }

/** What callers ask, split so that the loop itself adds nothing to a request but one `await`. */
export interface Requests<Answer> {
  /** Whose turn it is. */
  readonly pick: () => number
  readonly ask: (caller: number) => Promise<Answer>
  /** Throws where the answer cannot be right. */
  readonly check: (answer: Answer, caller: number) => void
}

/** A closed loop: `inFlight` requests at all times, the next as soon as one is answered. */
export async function closedLoop<Answer>(
  inFlight: number,
  extent: Extent,
  { pick, ask, check }: Requests<Answer>,
): Promise<Load> {
  const most = 'requests' in extent ? extent.requests : Number.POSITIVE_INFINITY
  let asked = 0
  let isOver = false
  const end = () => {
    isOver = true
  }
  const timer = 'ms' in extent ? setTimeout(end, extent.ms) : undefined

  async function lane(): Promise<void> {
    while (!isOver && asked < most) {
      asked++
      const caller = pick()
      check(await ask(caller), caller)
    }
  }

  const cpu = process.cpuUsage()
  const start = performance.now()
  try {
    await Promise.all(Array.from({ length: inFlight }, lane))
  } finally {
    end()
    clearTimeout(timer)
  }
  const seconds = (performance.now() - start) / 1000
  const { user, system } = process.cpuUsage(cpu)
  return { requests: asked, seconds, clientCpuSeconds: (user + system) / 1e6 }
}

export function perSecond({ requests, seconds }: Load): number {
  return requests / seconds
}

export function clientCpuOf({ requests, clientCpuSeconds }: Load): number {
  return clientCpuSeconds / requests
}
