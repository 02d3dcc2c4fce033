/** A request, and the times between which it was decided. They are equal if the exact time is known. */
export interface Seen {
  readonly isAdmitted: boolean
  readonly fromMs: number
  readonly untilMs: number
}

/**
 * Returns the most requests admitted within any window of this length.
 *
 * A request counts if it is certainly in the window: sent after its start and answered before its end.
 */
export function fullestWindow(requests: readonly Seen[], windowMs: number): number {
  const admitted = requests.filter(({ isAdmitted }) => isAdmitted)
  const begins = admitted.toSorted((a, b) => a.fromMs - b.fromMs)
  let fullest = 0
  for (const [i, { fromMs }] of begins.entries()) {
    let inside = 0
    for (let j = i; j < begins.length && begins[j]!.fromMs < fromMs + windowMs; j++) {
      if (begins[j]!.untilMs < fromMs + windowMs) inside++
    }
    fullest = Math.max(fullest, inside)
  }
  return fullest
}

/** Returns the number of requests that an ideal limiter admits. */
export function idealAdmissions(requests: readonly Seen[], limit: number, windowMs: number): number {
  const times = requests.map(({ fromMs, untilMs }) => (fromMs + untilMs) / 2).toSorted((a, b) => a - b)
  const admitted: number[] = []
  for (const atMs of times) {
    const last = admitted[admitted.length - limit]
    if (last === undefined || last <= atMs - windowMs) admitted.push(atMs)
  }
  return admitted.length
}

/** A limiter's admissions, compared with the limit and with an ideal limiter. */
export interface Verdict {
  readonly name: string
  readonly isOurs: boolean
  /** The fullest window, in percent of the limit. */
  readonly fullestPercent: number
  /** Admitted requests, in percent of the requests that an ideal limiter admits. */
  readonly admittedPercent: number
  readonly requests: number
}

export function judge(
  { name, isOurs }: { readonly name: string; readonly isOurs: boolean },
  requests: readonly Seen[],
  { limit, windowMs }: { readonly limit: number; readonly windowMs: number },
): Verdict {
  const admitted = requests.filter(({ isAdmitted }) => isAdmitted).length
  return {
    name,
    isOurs,
    fullestPercent: (100 * fullestWindow(requests, windowMs)) / limit,
    admittedPercent: (100 * admitted) / idealAdmissions(requests, limit, windowMs),
    requests: requests.length,
  }
}
