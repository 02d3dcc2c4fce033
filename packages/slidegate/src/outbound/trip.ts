import type { Decision } from '../decision.ts'
import { originOf } from '../limiter/origin.ts'
import { Aborts } from '../limiter/waiting/aborts.ts'
import { WaitError } from '../limiter/waiting/wait-error.ts'
import { adviceOf, type ReadHeader } from './advice.ts'
import { type Lane, laneOf } from './lane.ts'
import { heed, isNews, isRefusal, lessonOf } from './lesson.ts'
import type { OutboundRequest, OutboundSettings } from './options.ts'
import { delayMs, isIdempotent, isNetworkError, isRepeatable, isUnseen } from './retry.ts'
import { learn, type Terms, upstreamTerms } from './upstream-limiter.ts'

export interface Sending extends OutboundRequest {
  readonly signal: AbortSignal | undefined
  readonly body: unknown
  /** Whether redirects are followed unseen. */
  readonly isFollowed: boolean
}

/** Part of a window after which a request that is still under way is charged anew, well before its charge has left. */
const RENEWED_AFTER = 0.8

const MAX_TIMER_MS = 2 ** 31 - 1

/**
 * One request, from its first wait to its last answer: `admitted`, then it is sent, then `answered` or `failed`, which tell
 * whether to begin again.
 *
 * The upstream counts it at some time between its admission and its answer. Where those are no further apart than the
 * margin, the charge of its admission counts for as long as the upstream does. Else it is moved to its answer.
 */
export class Trip {
  readonly #settings: OutboundSettings
  readonly #sending: Sending
  readonly #signal: AbortSignal | undefined
  readonly #key: string
  readonly #cost: number
  readonly #priority: number
  readonly #lane: Lane
  readonly #untilMs: number
  #attempt = 0
  #delayMs = 0
  #decision: Decision | undefined
  /** Before it was charged. */
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
    this.#lane = laneOf(settings.limiter, this.#key)
    this.#lane.enter()
  }

  /** Resolves when it may be sent, now. Rejects with the reason of its signal, or as `Limiter.wait` does. */
  async admitted(): Promise<void> {
    try {
      await this.#admitted()
    } catch (error) {
      this.#lane.leave()
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
      const { learning } = this.#lane
      if (learning !== undefined) await orAborted(signal, (resolve) => void learning.then(resolve))
      const options = { cost: this.#cost, priority: this.#priority, signal, maxWaitMs: this.#leftMs }
      const calledAtMs = performance.now()
      try {
        this.#decision = await limiter.wait(this.#key, options)
      } catch (error) {
        const terms = upstreamTerms(limiter)
        if (terms === undefined || !(await this.#isTooLowToTry(terms, error))) throw error
        const declared = terms.limits.map(({ limit }) => limit)
        await learn(limiter, terms, this.#key, declared)
        continue
      }
      this.#lane.latest = this.#decision
      this.#askedAtMs = originOf(this.#decision)?.askedAtMs ?? calledAtMs
      const isAborted = signal?.aborted === true
      if (!isAborted && this.#lane.isInformed(this.#askedAtMs)) return
      this.#giveBack()
      if (isAborted) throw signal.reason
    }
  }

  /** Whether a limit that was learnt is lower than its cost: were it never sent, nobody might hear of a higher one. */
  async #isTooLowToTry(terms: Terms, error: unknown): Promise<boolean> {
    if (!(error instanceof WaitError) || error.reason !== 'never') return false
    const isOurs = error.decision?.source === 'store' && areOf(terms, error.decision)
    if (!isOurs || terms.limits.some(({ limit }) => limit < this.#cost)) return false
    // What was set by hand may have no end.
    const override = await this.#settings.limiter.overrides.get(this.#key)
    return override?.expiresInMs !== undefined
  }

  get #leftMs(): number {
    return Math.max(0, Math.ceil(this.#untilMs - performance.now()))
  }

  /** The upstream has answered. Whether the answer is to be dropped, and the request to be sent again. */
  answered(status: number, header: ReadHeader): boolean {
    this.#counted()
    const { limiter, learn, maxHoldMs, retry } = this.#settings
    const { method } = this.#sending
    const terms = upstreamTerms(limiter)
    const lane = this.#lane
    const decision = this.#decision!
    const advice = adviceOf(header, Date.now())
    // Those that were refused together are refused once.
    if (lane.isInformed(this.#askedAtMs)) lane.refusals = status === 429 ? lane.refusals + 1 : 0
    const refusals = learn ? lane.refusals : this.#attempt
    const lesson = lessonOf(advice, status, terms, { refusals, maxHoldMs, random: Math.random })
    if (learn && terms !== undefined && isNews(lesson, terms, decision, lane.latest ?? decision)) {
      lane.learn(() => heed(lesson, terms, limiter, this.#key, decision))
    }
    // The caller is given the connection of a CONNECT, whatever the answer.
    const isAnyMethod = status === 429 && retry.anyMethodOn429 && method !== 'CONNECT'
    const mayRepeat = isIdempotent(method) || isAnyMethod
    return this.#again(isRefusal(status) && mayRepeat, lesson.askedMs)
  }

  /** No answer came, `isUnsent` where nothing was sent. Whether the request is to be sent again. */
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
    this.#lane.leave()
    return false
  }

  /** It is known when it was counted at the latest: now, or later where it failed and may still be on its way. */
  #counted(isFailed = false): void {
    clearInterval(this.#renewal)
    // A stamp is up to a millisecond earlier than what it stands for.
    const latestMs = this.#askedAtMs + this.#marginMs - 1
    if (isFailed || this.#isRenewed || performance.now() > latestMs) this.#moveToNow()
  }

  /** By how much the windows in force are longer than the upstream's. */
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
    // Whoever has sent it waits for it.
    this.#renewal.unref?.()
  }

  /** Resolves when a request that is answered late counts from its answer on: a process may end when it has what it wanted. */
  get moved(): Promise<void> | undefined {
    return this.#moving
  }

  /** Counts from now on. Charged first: there is no instant at which it does not count. */
  #moveToNow(): void {
    const { limiter } = this.#settings
    this.#moving = limiter.charge(this.#key, this.#cost).then(
      () => this.#giveBack(),
      () => {},
    )
  }

  /** What gets lost on its way leaves the window in time. */
  #giveBack(): void {
    this.#settings.limiter.refund(this.#key, this.#decision!).catch(() => {})
  }
}

/** Whether what was decided by are the limits of the upstream, or what they were lowered to. */
function areOf({ limits }: Terms, decision: Decision): boolean {
  return decision.limits.every(
    ({ windowMs, shadow }) => shadow || limits.some((limit) => limit.windowMs === windowMs),
  )
}

interface Emitter {
  once(event: 'error', listener: (error: Error) => void): unknown
}

/** A stream of Node that fails before it is sent has nobody else to listen: the process would end. */
function withFailure({ body, signal }: Sending): AbortSignal | undefined {
  if (typeof (body as Partial<Emitter> | null | undefined)?.once !== 'function') return signal
  const failure = new AbortController()
  ;(body as Emitter).once('error', (error) => failure.abort(error))
  return signal === undefined ? failure.signal : AbortSignal.any([signal, failure.signal])
}

/** Those who are to be told of a signal while they wait for something else than a limiter. */
const aborts = new Aborts<(reason: unknown) => void>((waiting, reason) => {
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
