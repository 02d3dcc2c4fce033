import { connect, type Socket } from 'node:net'
import { RespFrames } from './resp-frames.ts'

/** A fault that affects traffic. Delays apply to traffic that is forwarded. */
export interface Faults {
  readonly kind:
    | 'none'
    | 'blackHole'
    | 'dropReplies'
    | 'dropRepliesThenClose'
    | 'cutMidReply'
    | 'cutAfterRequest'
    | 'refuse'
  readonly repliesMs: number
  readonly requestsMs: number
}

export interface ProxyContext {
  readonly totals: { requests: number; replies: number }
  faults(): Faults
  spend(): void
}

/** One connection through a proxy: the client's socket and the matching socket to the server. */
export class ProxiedConnection {
  /** Whether data was dropped. From then on, replies can't be matched with requests. */
  hasLost = false
  /** The number of replies after which this connection is destroyed, if that is already known. */
  #doomedAt: number | undefined
  readonly #client: Socket
  readonly #server: Socket
  readonly #context: ProxyContext
  readonly #requests = new RespFrames()
  readonly #replies = new RespFrames()

  constructor(client: Socket, targetPort: number, context: ProxyContext) {
    this.#client = client
    this.#context = context
    this.#server = connect({ port: targetPort, host: '127.0.0.1', noDelay: true })
    const toServer = inOrder((chunk) => this.#request(chunk))
    const toClient = inOrder((chunk) => {
      if (!client.destroyed) client.write(chunk)
    })
    client.on('data', (chunk) => {
      if (this.#swallows()) return
      toServer(chunk, context.faults().requestsMs)
    })
    this.#server.on('data', (chunk) => this.#reply(chunk, toClient))
    client.on('error', () => {})
    this.#server.on('error', () => {})
    client.once('close', () => this.destroy())
    // A close is traffic too: in a black hole, the other side doesn't notice it and keeps waiting.
    this.#server.once('close', () => {
      if (!this.#swallows()) this.destroy()
    })
  }

  destroy(): void {
    this.#client.destroy()
    this.#server.destroy()
  }

  /** Whether data is dropped in both directions. */
  #swallows(): boolean {
    const { kind } = this.#context.faults()
    if (kind === 'blackHole') this.hasLost = true
    return this.hasLost && !isDroppingReplies(kind)
  }

  #request(chunk: Buffer): void {
    if (this.#server.destroyed) return
    const before = this.#requests.count
    this.#requests.feed(chunk)
    this.#context.totals.requests += this.#requests.count - before
    this.#server.write(chunk)
    if (this.#context.faults().kind === 'cutAfterRequest' && this.#requests.count > before) {
      this.#context.spend()
      this.hasLost = true
      this.#doomedAt = this.#requests.count
    }
  }

  #reply(chunk: Buffer, forward: (chunk: Buffer, afterMs: number) => void): void {
    const before = this.#replies.count
    this.#replies.feed(chunk)
    this.#context.totals.replies += this.#replies.count - before
    const { kind, repliesMs } = this.#context.faults()
    if (isDroppingReplies(kind)) this.hasLost = true
    if (kind === 'dropRepliesThenClose') this.#doomedAt = this.#requests.count
    if (this.#doomedAt !== undefined && this.#replies.count >= this.#doomedAt) this.destroy()
    if (this.#swallows() || this.hasLost) return
    if (kind === 'cutMidReply') {
      this.#context.spend()
      this.hasLost = true
      this.#client.write(chunk.subarray(0, Math.ceil(chunk.length / 2)), () => this.destroy())
      return
    }
    forward(chunk, repliesMs)
  }
}

function isDroppingReplies(kind: Faults['kind']): boolean {
  return kind === 'dropReplies' || kind === 'dropRepliesThenClose'
}

/** Forwards chunks in order, each after its delay, even if delays change meanwhile. */
function inOrder(forward: (chunk: Buffer) => void): (chunk: Buffer, afterMs: number) => void {
  const waiting: Buffer[] = []
  let lastDueMs = 0
  return (chunk, afterMs) => {
    const nowMs = performance.now()
    lastDueMs = Math.max(nowMs + afterMs, lastDueMs)
    if (waiting.length === 0 && lastDueMs <= nowMs) {
      forward(chunk)
      return
    }
    waiting.push(chunk)
    setTimeout(() => forward(waiting.shift()!), lastDueMs - nowMs).unref()
  }
}
