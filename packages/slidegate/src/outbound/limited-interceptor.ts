// limitedInterceptor(): an interceptor for undici. Declares undici's types, so that undici needn't be installed.
import { invalidOption, show } from '../errors.ts'
import type { Limiter } from '../limiter.ts'
import { Attempts } from './attempts.ts'
import { type OutboundOptions, type OutboundSettings, originOfUrl, outboundSettings } from './options.ts'

/** Pauses and aborts a call. */
export interface CallController {
  readonly aborted: boolean
  readonly paused: boolean
  readonly reason: Error | null
  readonly rawHeaders?: unknown
  readonly rawTrailers?: unknown
  abort(reason: Error): void
  pause(): void
  resume(): void
}

export type CallHeaders = Readonly<Record<string, string | string[] | undefined>>

export interface CallHandler {
  onRequestStart?(controller: CallController, context: unknown): void
  onRequestUpgrade?(controller: CallController, status: number, headers: CallHeaders, socket: unknown): void
  onResponseStart?(controller: CallController, status: number, headers: CallHeaders, message?: string): void
  onResponseData?(controller: CallController, chunk: Uint8Array): void
  onResponseEnd?(controller: CallController, trailers: CallHeaders): void
  onResponseError?(controller: CallController, error: Error): void
}

export interface CallOptions {
  readonly origin?: string | URL
  readonly path: string
  readonly method: string
  readonly body?: unknown
}

/** An interceptor for `dispatcher.compose()` in undici 7 and later. */
export type LimitedInterceptor = <Options, Handler>(
  dispatch: (options: Options, handler: Handler) => boolean,
) => (options: Options, handler: Handler) => boolean

/**
 * Like `limitedFetch`, for an undici dispatcher: `agent.compose(limitedInterceptor(limiter))`.
 *
 * Put interceptors that resend requests, such as `redirect()` and `retry()`, after this one. Each of their requests then waits
 * for the limiter.
 *
 * @throws {SlidegateError} `invalid_option`
 */
export function limitedInterceptor(limiter: Limiter, options?: OutboundOptions): LimitedInterceptor {
  const settings = outboundSettings(limiter, options)
  return (dispatch) => (callOptions, handler) => {
    const call = new LimitedCall(
      settings,
      callOptions as CallOptions,
      handler as CallHandler,
      dispatch as unknown as Dispatch,
    )
    void call.start()
    return true
  }
}

/** Maximum bytes read from a dropped response. Its connection can be reused only after the whole response has been read. */
const MAX_DROPPED_BYTES = 65_536

/** A placeholder for a missing origin. */
const NOWHERE = 'http://unknown.invalid'

/** The caller's controller, which stays the same for all attempts. */
class LastingController implements CallController {
  readonly #aborts = new AbortController()
  #current: CallController | undefined
  #isPaused = false

  get signal(): AbortSignal {
    return this.#aborts.signal
  }

  set current(controller: CallController | undefined) {
    this.#current = controller
    if (controller !== undefined && this.#isPaused) controller.pause()
  }

  get aborted(): boolean {
    return this.signal.aborted
  }

  get reason(): Error | null {
    return this.aborted ? this.signal.reason : null
  }

  get paused(): boolean {
    return this.#isPaused
  }

  get rawHeaders(): unknown {
    return this.#current?.rawHeaders ?? null
  }

  get rawTrailers(): unknown {
    return this.#current?.rawTrailers ?? null
  }

  abort(reason: Error): void {
    this.#aborts.abort(reason)
    this.#current?.abort(reason)
  }

  pause(): void {
    this.#isPaused = true
    this.#current?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#current?.resume()
  }
}

type Dispatch = (options: CallOptions, handler: CallHandler) => boolean

/** An undici call with all its attempts. */
export class LimitedCall implements CallHandler {
  readonly #settings: OutboundSettings
  readonly #options: CallOptions
  readonly #handler: CallHandler
  readonly #dispatch: Dispatch
  readonly #controller = new LastingController()
  #attempts: Attempts | undefined
  #isSent = false
  #isAnswered = false
  /** Bytes read from a response that is being dropped. */
  #dropped: number | undefined

  constructor(settings: OutboundSettings, options: CallOptions, handler: CallHandler, dispatch: Dispatch) {
    this.#settings = settings
    this.#options = options
    this.#handler = handler
    this.#dispatch = dispatch
  }

  async start(): Promise<void> {
    try {
      if (this.#attempts === undefined) {
        // From here on, the caller can abort the call.
        this.#handler.onRequestStart?.(this.#controller, null)
        this.#attempts = this.#newAttempts()
      }
      await this.#attempts.admitted()
      this.#isSent = false
      this.#dropped = undefined
    } catch (error) {
      this.#handler.onResponseError?.(this.#controller, error as Error)
      return
    }
    try {
      this.#dispatch(this.#options, this)
    } catch (error) {
      this.onResponseError(this.#controller, error as Error)
    }
  }

  #newAttempts(): Attempts {
    const { origin, path, method, body } = this.#options
    if (origin === undefined && this.#settings.keyOf === originOfUrl) {
      throw invalidOption(
        `origin is ${show(origin)}, because undici's Client and Pool don't pass their origin; set key`,
        origin,
      )
    }
    const base = origin === undefined ? NOWHERE : new URL(origin).origin
    return new Attempts(this.#settings, {
      url: new URL(`${base}${path.startsWith('/') ? path : '/'}`),
      method: method.toUpperCase(),
      signal: this.#controller.signal,
      body,
      isFollowed: false,
    })
  }

  onRequestStart(controller: CallController): void {
    this.#controller.current = controller
    if (this.#controller.aborted) controller.abort(this.#controller.reason!)
    else this.#isSent = true
  }

  onRequestUpgrade(_: CallController, status: number, headers: CallHeaders, socket: unknown): void {
    this.#isAnswered = true
    this.#attempts!.answered(status, readerOf(headers))
    this.#handler.onRequestUpgrade?.(this.#controller, status, headers, socket)
  }

  onResponseStart(_: CallController, status: number, headers: CallHeaders, message?: string): void {
    // An informational (1xx) response isn't the final one.
    if (status >= 200 && this.#attempts!.answered(status, readerOf(headers))) {
      this.#dropped = 0
      return
    }
    this.#isAnswered = status >= 200
    this.#handler.onResponseStart?.(this.#controller, status, headers, message)
  }

  onResponseData(controller: CallController, chunk: Uint8Array): void {
    if (this.#dropped === undefined) {
      this.#handler.onResponseData?.(this.#controller, chunk)
      return
    }
    this.#dropped += chunk.byteLength
    if (this.#dropped > MAX_DROPPED_BYTES) controller.abort(new Error('dropped response is too long to read'))
  }

  onResponseEnd(_: CallController, trailers: CallHeaders): void {
    if (this.#dropped === undefined) this.#handler.onResponseEnd?.(this.#controller, trailers)
    else this.#restart()
  }

  onResponseError(_: CallController, error: Error): void {
    const isDropped = this.#dropped !== undefined
    if (isDropped || (!this.#isAnswered && this.#attempts!.failed(error, !this.#isSent))) this.#restart()
    else this.#handler.onResponseError?.(this.#controller, error)
  }

  #restart(): void {
    this.#controller.current = undefined
    void this.start()
  }
}

function readerOf(headers: CallHeaders): (name: string) => string | undefined {
  return (name) => {
    const value = headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }
}
