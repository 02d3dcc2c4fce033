// The attempts of one outbound request: it waits for a slot, is sent, is charged when the upstream counts it, and is retried.
import type { Decision } from '../decision.ts'
import { WaitError } from '../errors.ts'
import { chargeOf } from '../limiter/refund.ts'
import { AbortListeners } from '../runtime/abort-listeners.ts'
import { isNews, isRefusal, type KeyGate, keyGateOf, learnedFrom, putInForce } from './learned-limit.ts'
import type { OutboundRequest, OutboundSettings } from './options.ts'
import { type ReadHeader, readResponseHeaders } from './response-headers.ts'
import { delayMs, isIdempotent, isNetworkError, isRepeatable, isUnseen } from './retry.ts'
import { setLearnedLimits, type Terms, upstreamTerms } from './upstream-limiter.ts'

export interface Sending extends OutboundRequest {
  readonly signal: AbortSignal | undefined
  readonly body: unknown
  /** Whether `fetch` follows redirects. */
  readonly isFollowed: boolean
}

/** A request that is still in flight after this share of a window is charged again, before its charge expires. */
const RENEWED_AFTER = 0.8

const MAX_TIMER_MS = 2 ** 31 - 1

/**
 * The attempts of one request: await `admitted`, send it, then call `answered` or `failed`, which return whether to retry.
 *
 * The upstream counts the request at some time between its admission and its answer. If these are at most the margin apart, the
 * charge lasts as long as the upstream's. Else it is moved to the time of the answer.
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
  /** A time before the charge. */
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

  /** Resolves when the request may be sent. Rejects with the reason of its signal, or as `Limiter.wait` does. */
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
      this.#giveBack()
      if (isAborted) throw signal.reason
    }
  }

  /** Whether a learned limit is below the cost. Without sending the request, a higher limit may never be learned. */
  async #isTooLowToTry(terms: Terms, error: unknown): Promise<boolean> {
    if (!(error instanceof WaitError) || error.reason !== 'impossible') return false
    const isOurs = error.decision?.source === 'store' && areOf(terms, error.decision)
    if (!isOurs || terms.limits.some(({ limit }) => limit < this.#cost)) return false
    // Overrides set by an operator may have no end.
    const override = await this.#settings.limiter.overrides.get(this.#key)
    return override?.expiresInMs !== undefined
  }

  get #leftMs(): number {
    return Math.max(0, Math.ceil(this.#untilMs - performance.now()))
  }

  /** Call it with the answer. Returns whether to drop the answer and send the request again. */
  answered(status: number, header: ReadHeader): boolean {
    this.#counted()
    const { limiter, learn, maxHoldMs, retry } = this.#settings
    const { method } = this.#sending
    const terms = upstreamTerms(limiter)
    const gate = this.#gate
    const decision = this.#decision!
    const headers = readResponseHeaders(header, Date.now())
    // Requests that were refused together count once.
    if (gate.isInformed(this.#askedAtMs)) gate.refusals = status === 429 ? gate.refusals + 1 : 0
    const refusals = learn ? gate.refusals : this.#attempt
    const learned = learnedFrom(headers, status, terms, { refusals, maxHoldMs, random: Math.random })
    if (learn && terms !== undefined && isNews(learned, terms, decision, gate.latest ?? decision)) {
      gate.learn(() => putInForce(learned, terms, limiter, this.#key, decision))
    }
    // The connection of a CONNECT belongs to the caller.
    const isAnyMethod = status === 429 && retry.anyMethodOn429 && method !== 'CONNECT'
    const mayRepeat = isIdempotent(method) || isAnyMethod
    return this.#again(isRefusal(status) && mayRepeat, learned.askedMs)
  }

  /** Call it if there is no answer; `isUnsent` if nothing was sent. Returns whether to send the request again. */
  failed(error: unknown, isUnsent = false): boolean {
    const { url, method, isFollowed } = this.#sending
    if (isUnsent || isUnseen(error, url, isFollowed)) this.#uncounted()
    else this.#counted(true)
    return this.#again(isNetworkError(error) && isIdempotent(method), 0)
  }

  #uncounted(): void {
    clearInterval(this.#renewal)
    this.#giveBack()
  }

  #again(mayRepeat: boolean, askedMs: number): boolean {
    const delay = delayMs(this.#settings.retry, this.#attempt, askedMs, Math.random)
    const isDue = delay !== undefined && delay <= this.#leftMs
    if (mayRepeat && isRepeatable(this.#sending.body) && isDue && this.#signal?.aborted !== true) {
      this.#delayMs = delay
      return true
    }
    this.#gate.leave()
    return false
  }

  /** The upstream counted it, or, if it failed and may be on its way, will count it. */
  #counted(isFailed = false): void {
    clearInterval(this.#renewal)
    // A stamp may be a millisecond early.
    const latestMs = this.#askedAtMs + this.#marginMs - 1
    if (isFailed || this.#isRenewed || performance.now() > latestMs) this.#moveToNow()
  }

  /** Milliseconds by which the windows in force are longer than the upstream's. */
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
    // The request itself keeps the process alive.
    this.#renewal.unref?.()
  }

  /** Resolves when the charge of a late answer was moved. Await it: the process may exit after it. */
  get moved(): Promise<void> | undefined {
    return this.#moving
  }

  /** Moves the charge to now. Charges first, so the request counts at every instant. */
  #moveToNow(): void {
    const { limiter } = this.#settings
    this.#moving = limiter.charge(this.#key, this.#cost).then(
      () => this.#giveBack(),
      () => {},
    )
  }

  /** A lost refund is harmless: the charge expires with the window. */
  #giveBack(): void {
    this.#settings.limiter.refund(this.#key, this.#decision!).catch(() => {})
  }
}

/** Whether the decision is by the upstream's limits, declared or learned. */
function areOf({ limits }: Terms, decision: Decision): boolean {
  return decision.limits.every(
    ({ windowMs, shadow }) => shadow || limits.some((limit) => limit.windowMs === windowMs),
  )
}

interface Emitter {
  once(event: 'error', listener: (error: Error) => void): unknown
}

/** Aborts if a body stream fails before it is sent: without a listener the error would end the process. */
function withFailure({ body, signal }: Sending): AbortSignal | undefined {
  if (typeof (body as Partial<Emitter> | null | undefined)?.once !== 'function') return signal
  const failure = new AbortController()
  ;(body as Emitter).once('error', (error) => failure.abort(error))
  return signal === undefined ? failure.signal : AbortSignal.any([signal, failure.signal])
}

/** Signals that end waits for anything but a limiter. */
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
