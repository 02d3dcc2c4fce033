// Sends a batch of ops in one call to the script, and decodes the reply.

import type { StoreUnavailableError } from '../../errors.ts'
import type { Receiver, Result, Transport } from './batcher.ts'
import type { Connection, Send } from './clients.ts'
import { decode } from './decode.ts'
import { encode } from './encode.ts'
import type { Keyspace } from './keyspace.ts'
import type { Batch } from './queue.ts'
import { SCRIPT, SCRIPT_SHA1 } from './script.generated.ts'

/** How long a bucket's ops are sent individually after a failure. Doubles with each further failure. */
const MIN_SINGLY_MS = 1000
const MAX_SINGLY_MS = 8000

/** Call numbers are padded to this length, because the script compares them as text. */
const RECEIPT_DIGITS = 17

/** A receipt is renewed this often. Its TTL is ten times longer, because calls may be lost. */
const RECEIPT_RENEWED_MS = 60_000

/** A Redis key that stores the script's last answer to a call. Each `Batch.place` has its own. */
interface Receipt {
  readonly key: string
  renewedAtMs: number
}

/** Sends calls to one server. For a Cluster, there is one transport per bucket. */
export class ScriptTransport implements Transport {
  /** False until the script is known to be loaded. Until then, concurrent calls may be reordered. */
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
    // While a slot is moving, its keys are on two servers, and calls with several keys (or a receipt) fail.
    const isDivisible = isCluster && (resends || batch.ops.length > 1)
    if (isDivisible && batch.sentAtMs < this.#singlyUntilMs) {
      this.#sendSingly(batch, receiver)
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
      try {
        receiver.answered(batch, decode(batch.ops, reply, this.#keyspace.buckets))
      } catch (error) {
        receiver.failed(batch, error)
      }
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
        this.#sendSingly(batch, receiver)
      } else {
        receiver.failed(batch, error)
      }
    }
    this.#send('EVALSHA', SCRIPT_SHA1, keys, words).then(answered, failed)
  }

  /** The slot may be moving. A client that resends commands doesn't report that: requests just time out. */
  lost(): void {
    if (this.#connection.isCluster && this.#connection.resends) this.#goSingly()
  }

  #goSingly(): void {
    const nowMs = performance.now()
    if (nowMs < this.#singlyUntilMs) return
    this.#singlyUntilMs = nowMs + this.#singlyMs
    this.#singlyMs = Math.min(2 * this.#singlyMs, MAX_SINGLY_MS)
  }

  /** Sends ops individually. While a slot is moving, each of its keys is on one of two servers. */
  #sendSingly(batch: Batch, receiver: Receiver): void {
    const results = batch.ops.map(async (request): Promise<Result> => {
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
    })
    void Promise.all(results).then((all) => receiver.answered(batch, all))
  }

  /**
   * Ensures that a call is charged only once, even if it is sent twice. Returns the number of keys.
   *
   * Appends a key and the call's number. The script stores its answer in that key. Each place has its own key, and no two calls in
   * flight have the same place. If a call arrives after a later one with the same place, it isn't executed.
   */
  #appendReceipt({ ops, place, sentAtMs }: Batch, words: string[]): number {
    // On a Cluster, all of a transport's calls use the same slot, and the receipt must be in that slot, too.
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

/** Runs the script. Loads it if Redis doesn't have it, for example after a restart or SCRIPT FLUSH. */
export async function runScript(
  connection: Connection,
  send: Send,
  keys: number,
  words: string[],
): Promise<unknown> {
  try {
    return await send('EVALSHA', SCRIPT_SHA1, keys, words)
  } catch (error) {
    if (!says(error, NO_SCRIPT)) throw error
    return loadAndRun(connection, send, keys, words)
  }
}

function loadAndRun(connection: Connection, send: Send, keys: number, words: string[]): Promise<unknown> {
  connection.scriptLoads++
  return send('EVAL', SCRIPT, keys, words)
}

// Valkey GLIDE changes the server's message to the second form.
const NO_SCRIPT = /^NOSCRIPT|\bNoScriptError\b/
const TRY_AGAIN = /TRYAGAIN|TryAgain/

function says(error: unknown, message: RegExp): boolean {
  return error instanceof Error && message.test(error.message)
}
