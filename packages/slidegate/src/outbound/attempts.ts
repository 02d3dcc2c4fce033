// The attempts of one outbound request: waits for admission, corrects the charge's time if needed, and retries.
import type { Decision } from '../decision.ts'
import { WaitError } from '../errors.ts'
import { chargeOf } from '../limiter/refund.ts'
import { AbortListeners } from '../runtime/abort-listeners.ts'
import { isNews, isRefusal, type KeyGate, keyGateOf, learnedFrom, putInForce } from './learned-limit.ts'
import type { OutboundRequest, OutboundSettings } from './options.ts'
import { type ReadHeader, readResponseHeaders } from './response-headers.ts'
import { delayMs, isIdempotent, isNetworkError, isRepeatable, neverArrived } from './retry.ts'
import { setLearnedLimits, type Terms, upstreamTerms } from './upstream-limiter.ts'

export interface Sending extends OutboundRequest {
  readonly signal: AbortSignal | undefined
  readonly body: unknown
  /** Whether `fetch` follows redirects. */
  readonly isFollowed: boolean
}

/** A fraction of the shortest window. A request that takes longer is charged again before its first charge expires. */
const RENEWED_AFTER = 0.8

const MAX_TIMER_MS = 2 ** 31 - 1

/**
 * The attempts of one request. Await `admitted`, send the request, then call `answered` or `failed`.
 *
 * `answered` and `failed` return whether to retry. The upstream counts the request at some time between its admission and its
 * response. If the two are at most `marginMs` apart, the charge covers the upstream's count. Otherwise, the charge is moved
 * to the time of the response.
 */
export class Attempts {
  readonly #settings: OutboundSettings
  readonly #sending: Sending
  readonly #signal: AbortSignal | undefined
  readonly #key: string
  readonly #cost: number
  readonly #priority: number
  readonly #gate: KeyGate
  readonly #untilMs: number
  #attempt = 0
  #delayMs = 0
  #decision: Decision | undefined
  /** When the charge was requested. The charge itself may be later. */
  #askedAtMs = 0
  #renewal: ReturnType<typeof setInterval> | undefined
  #isRenewed = false
  #moving: Promise<void> | undefined

  constructor(settings: OutboundSettings, sending: Sending) {
    this.#settings = settings
    this.#sending = sending
    this.#key = settings.keyOf(sending)
    this.#cost = settings.costOf(sending)
    this.#priority = settings.priorityOf(sending)
    this.#untilMs = performance.now() + settings.maxWaitMs
    this.#signal = withFailure(sending)
    this.#gate = keyGateOf(settings.limiter, this.#key)
    this.#gate.enter()
  }

  /** Resolves when the request may be sent. Rejects with the signal's abort reason, or with an error from `Limiter.wait`. */
  async admitted(): Promise<void> {
    try {
      await this.#admitted()
    } catch (error) {
      this.#gate.leave()
      throw error instanceof WaitError && error.reason === 'aborted' ? this.#signal?.reason : error
    }
    this.#attempt++
    this.#renewFromNowOn()
  }

  async #admitted(): Promise<void> {
    const { limiter } = this.#settings
    const signal = this.#signal
    if (this.#delayMs > 0) await pause(this.#delayMs, signal)
    for (;;) {
      const { learning } = this.#gate
      if (learning !== undefined) await orAborted(signal, (resolve) => void learning.then(resolve))
      const options = { cost: this.#cost, priority: this.#priority, signal, maxWaitMs: this.#leftMs }
      const calledAtMs = performance.now()
      try {
        this.#decision = await limiter.wait(this.#key, options)
      } catch (error) {
        const terms = upstreamTerms(limiter)
        if (terms === undefined || !(await this.#isTooLowToTry(terms, error))) throw error
        const declared = terms.limits.map(({ limit }) => limit)
        await setLearnedLimits(limiter, terms, this.#key, declared)
        continue
      }
      this.#gate.latest = this.#decision
      this.#askedAtMs = chargeOf(this.#decision)?.askedAtMs ?? calledAtMs
      const isAborted = signal?.aborted === true
      if (!isAborted && this.#gate.isInformed(this.#askedAtMs)) return
      this.#refund()
      if (isAborted) throw signal.reason
    }
  }

  /**
   * Whether the cost exceeds a learned limit but no declared one. If so, the request is sent regardless, because a
   * higher limit could never be learned otherwise.
   */
  async #isTooLowToTry(terms: Terms, error: unknown): Promise<boolean> {
    if (!(error instanceof WaitError) || error.reason !== 'impossible') return false
    const isOurs = error.decision?.source === 'store' && areOf(terms, error.decision)
    if (!isOurs || terms.limits.some(({ limit }) => limit < this.#cost)) return false
    // Learned limits always expire. An override that doesn't expire was set by an operator.
    const override = await this.#settings.limiter.overrides.get(this.#key)
    return override?.expiresInMs !== undefined
  }

  get #leftMs(): number {
    return Math.max(0, Math.ceil(this.#untilMs - performance.now()))
  }

  /** Call this when the response arrives. Returns whether to drop the response and send the request again. */
  answered(status: number, header: ReadHeader): boolean {
    this.#counted()
    const { limiter, learn, maxHoldMs, retry } = this.#settings
    const { method } = this.#sending
    const terms = upstreamTerms(limiter)
    const gate = this.#gate
    const decision = this.#decision!
    const headers = readResponseHeaders(header, Date.now())
    // Requests that were rejected at the same time count as one rejection.
    if (gate.isInformed(this.#askedAtMs)) gate.refusals = status === 429 ? gate.refusals + 1 : 0
    const refusals = learn ? gate.refusals : this.#attempt
    const learned = learnedFrom(headers, status, terms, { refusals, maxHoldMs, random: Math.random })
    if (learn && terms !== undefined && isNews(learned, terms, decision, gate.latest ?? decision)) {
      gate.learn(() => putInForce(learned, terms, limiter, this.#key, decision))
    }
    // After a CONNECT, the connection belongs to the caller.
    const isAnyMethod = status === 429 && retry.anyMethodOn429 && method !== 'CONNECT'
    const mayRepeat = isIdempotent(method) || isAnyMethod
    return this.#mayRetry(isRefusal(status) && mayRepeat, learned.requestedMs)
  }

  /** Call this if no response arrived. `isUnsent` means that nothing was sent. Returns whether to retry. */
  failed(error: unknown, isUnsent = false): boolean {
    const { url, method, isFollowed } = this.#sending
    if (isUnsent || neverArrived(error, url, isFollowed)) this.#uncounted()
    else this.#counted(true)
    return this.#mayRetry(isNetworkError(error) && isIdempotent(method), 0)
  }

  #uncounted(): void {
    clearInterval(this.#renewal)
    this.#refund()
  }

  #mayRetry(mayRepeat: boolean, requestedMs: number): boolean {
    const delay = delayMs(this.#settings.retry, this.#attempt, requestedMs, Math.random)
    const isDue = delay !== undefined && delay <= this.#leftMs
    if (mayRepeat && isRepeatable(this.#sending.body) && isDue && this.#signal?.aborted !== true) {
      this.#delayMs = delay
      return true
    }
    this.#gate.leave()
    return false
  }

  /** Called when the upstream has counted the request. If the request failed in flight, the upstream may count it later. */
  #counted(isFailed = false): void {
    clearInterval(this.#renewal)
    // The charge's timestamp may be a millisecond early.
    const latestMs = this.#askedAtMs + this.#marginMs - 1
    if (isFailed || this.#isRenewed || performance.now() > latestMs) this.#moveToNow()
  }

  /** Milliseconds by which the limiter's windows are longer than the upstream's. */
  get #marginMs(): number {
    const terms = upstreamTerms(this.#settings.limiter)
    return terms !== undefined && areOf(terms, this.#decision!) ? terms.marginMs : 0
  }

  #renewFromNowOn(): void {
    this.#isRenewed = false
    const windowsMs = this.#decision!.limits.map(({ windowMs }) => windowMs)
    const renew = () => {
      this.#isRenewed = true
      this.#moveToNow()
    }
    this.#renewal = setInterval(renew, Math.min(MAX_TIMER_MS, RENEWED_AFTER * Math.min(...windowsMs)))
    // The request keeps the process alive, so the timer doesn't have to.
    this.#renewal.unref?.()
  }

  /** Resolves when the charge for a late response has been moved to the current time. Await it, or the process may exit first. */
  get moved(): Promise<void> | undefined {
    return this.#moving
  }

  /** Moves the charge to the current time. Charges first, then refunds, so that the request always counts. */
  #moveToNow(): void {
    const { limiter } = this.#settings
    this.#moving = limiter.charge(this.#key, this.#cost).then(
      () => this.#refund(),
      () => {},
    )
  }

  /** Refunds the charge. A failure does no harm, because the charge expires with the window. */
  #refund(): void {
    this.#settings.limiter.refund(this.#key, this.#decision!).catch(() => {})
  }
}

/** Whether the decision is based on the upstream's limits, declared or learned. */
function areOf({ limits }: Terms, decision: Decision): boolean {
  return decision.limits.every(
    ({ windowMs, shadow }) => shadow || limits.some((limit) => limit.windowMs === windowMs),
  )
}

interface Emitter {
  once(event: 'error', listener: (error: Error) => void): unknown
}

/**
 * Returns a signal that is also aborted if a body stream fails before it's sent. Otherwise, the unhandled error would crash
 * the process.
 */
function withFailure({ body, signal }: Sending): AbortSignal | undefined {
  if (typeof (body as Partial<Emitter> | null | undefined)?.once !== 'function') return signal
  const failure = new AbortController()
  ;(body as Emitter).once('error', (error) => failure.abort(error))
  return signal === undefined ? failure.signal : AbortSignal.any([signal, failure.signal])
}

/** Handles abort signals for all waits except the limiter's own. */
const aborts = new AbortListeners<(reason: unknown) => void>((waiting, reason) => {
  for (const abort of waiting) abort(reason)
})

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const begin = (resolve: () => void) => {
    timer = setTimeout(resolve, ms)
  }
  return orAborted(signal, begin).finally(() => clearTimeout(timer))
}

/** Rejects with the signal's reason. */
function orAborted(signal: AbortSignal | undefined, begin: (resolve: () => void) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal === undefined) return begin(resolve)
    if (signal.aborted) return reject(signal.reason)
    aborts.watch(signal, reject)
    begin(() => {
      aborts.forget(signal, reject)
      resolve()
    })
  })
}
