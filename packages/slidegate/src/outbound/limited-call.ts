import { invalidOption, show } from '../errors.ts'
import { type OutboundSettings, originOfUrl } from './options.ts'
import { Trip } from './trip.ts'
import type { CallController, CallHandler, CallHeaders, CallOptions } from './undici.ts'

/** Of a response that is dropped so much is read, so that its connection can be used again. */
const MAX_DROPPED_BYTES = 65_536

/** Where a call goes that does not tell. */
const NOWHERE = 'http://unknown.invalid'

/** What the caller holds on to while there is no request yet, and while one follows another. */
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

/** A call of undici that waits for its slot, perhaps several times. */
export class LimitedCall implements CallHandler {
  readonly #settings: OutboundSettings
  readonly #options: CallOptions
  readonly #handler: CallHandler
  readonly #dispatch: Dispatch
  readonly #controller = new LastingController()
  #trip: Trip | undefined
  #isSent = false
  #isAnswered = false
  /** Bytes of a response that is dropped. */
  #dropped: number | undefined

  constructor(settings: OutboundSettings, options: CallOptions, handler: CallHandler, dispatch: Dispatch) {
    this.#settings = settings
    this.#options = options
    this.#handler = handler
    this.#dispatch = dispatch
  }

  async start(): Promise<void> {
    try {
      if (this.#trip === undefined) {
        // From here on it can be aborted.
        this.#handler.onRequestStart?.(this.#controller, null)
        this.#trip = this.#newTrip()
      }
      await this.#trip.admitted()
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

  #newTrip(): Trip {
    const { origin, path, method, body } = this.#options
    if (origin === undefined && this.#settings.keyOf === originOfUrl) {
      throw invalidOption(
        `origin is ${show(origin)}: a Client or a Pool does not tell its own; give the option key`,
        origin,
      )
    }
    const base = origin === undefined ? NOWHERE : new URL(origin).origin
    return new Trip(this.#settings, {
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
    this.#trip!.answered(status, readerOf(headers))
    this.#handler.onRequestUpgrade?.(this.#controller, status, headers, socket)
  }

  onResponseStart(_: CallController, status: number, headers: CallHeaders, message?: string): void {
    // What only informs is no answer yet.
    if (status >= 200 && this.#trip!.answered(status, readerOf(headers))) {
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
    if (this.#dropped > MAX_DROPPED_BYTES) controller.abort(new Error('too long to be dropped'))
  }

  onResponseEnd(_: CallController, trailers: CallHeaders): void {
    if (this.#dropped === undefined) this.#handler.onResponseEnd?.(this.#controller, trailers)
    else this.#restart()
  }

  onResponseError(_: CallController, error: Error): void {
    const isDropped = this.#dropped !== undefined
    if (isDropped || (!this.#isAnswered && this.#trip!.failed(error, !this.#isSent))) this.#restart()
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
