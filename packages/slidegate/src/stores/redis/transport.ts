// Sends a batch as a call of the script, and turns its reply into results.

import type { StoreUnavailableError } from '../../errors.ts'
import type { Receiver, Result, Transport } from './batcher.ts'
import type { Connection, Send } from './clients.ts'
import { decode } from './decode.ts'
import { encode, type Request } from './encode.ts'
import type { Keyspace } from './keyspace.ts'
import type { Batch } from './queue.ts'
import { SCRIPT, SCRIPT_SHA1 } from './script.generated.ts'

/** How long ops are sent one at a time after a failure. Counted per bucket, and doubled with each further failure. */
const MIN_SINGLY_MS = 1000
const MAX_SINGLY_MS = 8000

/** Call numbers are padded to this length, so that they compare correctly as text. */
const RECEIPT_DIGITS = 17

/** A tenth of a receipt's TTL, because calls that renew it may be lost. */
const RECEIPT_RENEWED_MS = 60_000

/** The key with the script's last answer to a call of one place. */
interface Receipt {
  readonly key: string
  renewedAtMs: number
}

/** Calls to one server, or to the server with one bucket of a Cluster. */
export class ScriptTransport implements Transport {
  /** Whether Redis is believed to know the script. If it doesn't, calls waiting at the same time may be reordered. */
  isOrdered = false
  readonly #connection: Connection
  readonly #send: Send
  readonly #keyspace: Keyspace
  readonly #receipts: Receipt[] = []
  #numbered = 0
  #singlyMs = MIN_SINGLY_MS
  #singlyUntilMs = 0

  constructor(connection: Connection, keyspace: Keyspace) {
    this.#connection = connection
    this.#send = connection.sender()
    this.#keyspace = keyspace
  }

  failure(error: unknown): StoreUnavailableError {
    return this.#connection.failure(error)
  }

  get isReady(): boolean {
    return this.#connection.isReady
  }

  send(batch: Batch, receiver: Receiver): void {
    const { isCluster, resends } = this.#connection
    // On a Cluster, the keys of a slot may be on two servers for a while. A receipt is an additional key.
    const isDivisible = isCluster && (resends || batch.ops.length > 1)
    if (isDivisible && batch.sentAtMs < this.#singlyUntilMs) {
      void this.#sendSingly(batch, receiver)
      return
    }
    const words: string[] = []
    for (let i = 0; i < batch.ops.length; i++) this.#keyspace.append(batch.ops[i]!.op, words)
    const keys = resends ? this.#appendReceipt(batch, words) : words.length
    encode(batch.ops, words)
    let isLoading = false

    // One promise per step would allocate 2 kB more for a single decision.
    const answered = (reply: unknown): void => {
      this.#connection.answered()
      this.isOrdered = !isLoading
      if (isDivisible) this.#singlyMs = MIN_SINGLY_MS
      let results: readonly Result[]
      try {
        results = decode(batch.ops, reply, this.#keyspace.buckets)
      } catch (error) {
        receiver.failed(batch, error)
        return
      }
      receiver.answered(batch, results)
    }
    const failed = (error: unknown): void => {
      if (!isLoading && says(error, NO_SCRIPT)) {
        isLoading = true
        this.isOrdered = false
        loadAndRun(this.#connection, this.#send, keys, words).then(answered, failed)
        return
      }
      this.#connection.answered()
      if (isDivisible && says(error, TRY_AGAIN)) {
        this.#goSingly()
        void this.#sendSingly(batch, receiver)
      } else {
        receiver.failed(batch, error)
      }
    }
    this.#send('EVALSHA', SCRIPT_SHA1, keys, words).then(answered, failed)
  }

  /** The slot may be moving. Clients that resend commands wait for that, longer than any request. Others report the failure. */
  lost(): void {
    if (this.#connection.isCluster && this.#connection.resends) this.#goSingly()
  }

  #goSingly(): void {
    const nowMs = performance.now()
    if (nowMs < this.#singlyUntilMs) return
    this.#singlyUntilMs = nowMs + this.#singlyMs
    this.#singlyMs = Math.min(2 * this.#singlyMs, MAX_SINGLY_MS)
  }

  /** While the slot moves, each key is on one of the two servers. */
  async #sendSingly(batch: Batch, receiver: Receiver): Promise<void> {
    receiver.answered(batch, await Promise.all(batch.ops.map((request) => this.#resultOf(request))))
  }

  async #resultOf(request: Request): Promise<Result> {
    const words: string[] = []
    this.#keyspace.append(request.op, words)
    const keys = words.length
    encode([request], words)
    try {
      const reply = await runScript(this.#connection, this.#send, keys, words)
      return decode([request], reply, this.#keyspace.buckets)[0]
    } catch (error) {
      return this.failure(error)
    }
  }

  /**
   * Numbers a call that may be sent twice, so that it is charged once. Returns the number of keys.
   *
   * The last key belongs to the call's place. The script stores its answer there. No two calls in flight share a place. A call
   * that arrives after a later one with its place isn't executed.
   */
  #appendReceipt({ ops, place, sentAtMs }: Batch, words: string[]): number {
    // On a Cluster, the receipt is in the slot of the keys, which is the same for all calls of a transport. Otherwise, it can be anywhere.
    this.#receipts[place] ??= {
      key: this.#keyspace.receiptKey(this.#connection.isCluster ? ops[0]!.op : undefined, place),
      renewedAtMs: Number.NEGATIVE_INFINITY,
    }
    const receipt = this.#receipts[place]
    const number = String(++this.#numbered).padStart(RECEIPT_DIGITS, '0')
    const isDue = sentAtMs - receipt.renewedAtMs >= RECEIPT_RENEWED_MS
    if (isDue) receipt.renewedAtMs = sentAtMs
    return words.push(receipt.key, isDue ? `${number}r` : number) - 1
  }
}

/** Counts how often the script had to be loaded. */
type Loads = Pick<Connection, 'scriptLoads'>

/** Runs the script, with EVAL if Redis doesn't know it. */
export async function runScript(of: Loads, send: Send, keys: number, words: string[]): Promise<unknown> {
  try {
    return await send('EVALSHA', SCRIPT_SHA1, keys, words)
  } catch (error) {
    if (!says(error, NO_SCRIPT)) throw error
    return loadAndRun(of, send, keys, words)
  }
}

/** After a restart, a failover or SCRIPT FLUSH nothing was executed. EVAL runs and loads the script. */
function loadAndRun(of: Loads, send: Send, keys: number, words: string[]): Promise<unknown> {
  of.scriptLoads++
  return send('EVAL', SCRIPT, keys, words)
}

// The second form is that of Valkey GLIDE.
const NO_SCRIPT = /^NOSCRIPT|\bNoScriptError\b/
const TRY_AGAIN = /TRYAGAIN|TryAgain/

function says(error: unknown, message: RegExp): boolean {
  return error instanceof Error && message.test(error.message)
}
