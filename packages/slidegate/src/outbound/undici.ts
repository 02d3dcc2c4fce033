// The little that is used of undici, by its shape: nobody has to install it who does not use it.

/** How a call is paused and aborted. */
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
