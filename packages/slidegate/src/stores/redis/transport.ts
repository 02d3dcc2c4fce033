// A batch as a call of the script, and its reply as results.

import { asUnavailable } from '../../errors.ts'
import type { Result, Transport } from './batcher.ts'
import type { Connection, Send } from './clients.ts'
import { decode } from './decode.ts'
import { encode, type Request } from './encode.ts'
import type { Keyspace } from './keyspace.ts'
import { SCRIPT, SCRIPT_SHA1 } from './script.generated.ts'

/** After a failure, the ops of a bucket are sent one by one for this time; after one that follows, for twice as long, up to a bound. */
const MIN_SINGLY_MS = 1000
const MAX_SINGLY_MS = 8000

/** This many digits, so that numbers compare as text. */
const RECEIPT_DIGITS = 17

/** A tenth of a receipt's TTL: should some calls that renew it get lost, others don't. */
const RECEIPT_RENEWED_MS = 60_000

/** What a call that may be sent twice carries so that it is charged once. */
interface Receipt {
  /** Where the script keeps what it has answered; the last of the call's keys. */
  readonly key: string
  /** The first of the call's words: its number, and a letter if the receipt's TTL has to be renewed. */
  readonly word: string
}

/** To one server, or to the one of a Cluster that has a bucket. */
export class ScriptTransport implements Transport {
  readonly #connection: Connection
  readonly #script: Script
  readonly #keyspace: Keyspace
  /** Calls that carry a receipt, and what the keys of receipts begin with. */
  #receipts = 0
  #receiptHead: string | undefined
  /** When the TTL of each place's receipt was last renewed. */
  readonly #renewedAtMs: number[] = []
  #singlyMs = MIN_SINGLY_MS
  #singlyUntilMs = 0

  constructor(connection: Connection, keyspace: Keyspace) {
    this.#connection = connection
    this.#script = new Script(connection.sender(), connection)
    this.#keyspace = keyspace
  }

  get server(): string {
    return this.#connection.server
  }

  get isOrdered(): boolean {
    return this.#script.isLoaded
  }

  get isReady(): boolean {
    return this.#connection.isReady
  }

  send(batch: readonly Request[], place: number): Promise<readonly Result[]> {
    const { isCluster, resends } = this.#connection
    const receipt = resends ? this.#receiptFor(batch, place) : undefined
    if (!isCluster || (batch.length === 1 && receipt === undefined)) return this.#call(batch, receipt)
    return this.#sendToSlot(batch, receipt)
  }

  /**
   * On a Cluster, the slot may be on its way to another server. Clients that send again what has failed wait for its
   * arrival, longer than any request here does, and others report it.
   */
  lost(): void {
    if (this.#connection.resends) this.#goSingly()
  }

  async #sendToSlot(batch: readonly Request[], receipt: Receipt | undefined): Promise<readonly Result[]> {
    if (performance.now() < this.#singlyUntilMs) return this.#sendSingly(batch)
    try {
      const results = await this.#call(batch, receipt)
      this.#singlyMs = MIN_SINGLY_MS
      return results
    } catch (error) {
      if (!saysTryAgain(error)) throw error
      // The slot is on its way to another server, and some of the keys are there already. One key is always either here or there.
      this.#goSingly()
      return this.#sendSingly(batch)
    }
  }

  #goSingly(): void {
    const nowMs = performance.now()
    if (!this.#connection.isCluster || nowMs < this.#singlyUntilMs) return
    this.#singlyUntilMs = nowMs + this.#singlyMs
    this.#singlyMs = Math.min(2 * this.#singlyMs, MAX_SINGLY_MS)
  }

  async #sendSingly(batch: readonly Request[]): Promise<readonly Result[]> {
    return Promise.all(
      batch.map(async (request) => {
        try {
          return (await this.#call([request]))[0]
        } catch (error) {
          return asUnavailable(error, this.server)
        }
      }),
    )
  }

  async #call(batch: readonly Request[], receipt?: Receipt): Promise<readonly Result[]> {
    const keys: string[] = []
    for (const { op } of batch) this.#keyspace.append(op, keys)
    if (receipt !== undefined) keys.push(receipt.key)
    try {
      const reply = await this.#script.run(keys, encode(batch, receipt?.word))
      return decode(batch, reply, this.#keyspace.buckets)
    } finally {
      this.#connection.answered()
    }
  }

  /**
   * Numbers the call, and gives it a place to leave its answer at. A call that is sent again has its old number, by which
   * the script knows it. No two calls in flight share a place, so an answer stays until its call is settled or
   * abandoned. A call that comes after a later one of its place isn't executed.
   */
  #receiptFor(batch: readonly Request[], place: number): Receipt {
    // On a Cluster it lies in the slot of the keys, which for one transport is always the same; elsewhere anywhere.
    this.#receiptHead ??= this.#keyspace.receiptHead(
      this.#connection.isCluster ? this.#keyspace.bucketOf(batch[0]!.op) : 0,
    )
    const nowMs = performance.now()
    const isDue = nowMs - (this.#renewedAtMs[place] ?? 0) >= RECEIPT_RENEWED_MS
    if (isDue) this.#renewedAtMs[place] = nowMs
    const number = String(++this.#receipts).padStart(RECEIPT_DIGITS, '0')
    return { key: `${this.#receiptHead}${place}`, word: isDue ? `${number}r` : number }
  }
}

/** The script, as the servers that one sender reaches know it. */
export class Script {
  /** Whether Redis knows it, as far as was seen. If it doesn't, calls that wait at the same time may change places. */
  isLoaded = false
  readonly #send: Send
  readonly #counts: Pick<Connection, 'scriptLoads'>

  constructor(send: Send, counts: Pick<Connection, 'scriptLoads'>) {
    this.#send = send
    this.#counts = counts
  }

  async run(keys: string[], words: string[]): Promise<unknown> {
    try {
      const reply = await this.#send('EVALSHA', SCRIPT_SHA1, keys, words)
      this.isLoaded = true
      return reply
    } catch (error) {
      if (!saysNoScript(error)) throw error
      // A new server, a restart, a failover or SCRIPT FLUSH: nothing was executed. EVAL does that, and loads it.
      this.isLoaded = false
      this.#counts.scriptLoads++
      return await this.#send('EVAL', SCRIPT, keys, words)
    }
  }
}

/** Valkey GLIDE doesn't pass on the words of the server. */
function saysNoScript(error: unknown): boolean {
  return error instanceof Error && /^NOSCRIPT|\bNoScriptError\b/.test(error.message)
}

function saysTryAgain(error: unknown): boolean {
  return error instanceof Error && /TRYAGAIN|TryAgain/.test(error.message)
}
