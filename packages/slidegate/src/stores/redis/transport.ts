import { asUnavailable, type SlidegateError, type StoreUnavailableError } from '../../errors.ts'
import type { Outcome } from '../store.ts'
import type { CallCounts } from './call-counts.ts'
import type { Connection, ScriptRunner } from './connection.ts'
import { decode } from './decode.ts'
import { encode, type Request } from './encode.ts'
import type { Keyspace } from './keyspace.ts'
import { type Receipt, Receipts } from './receipts.ts'

/** What became of a request. An error stands for the request that it befell. */
export type Result = Outcome | StoreUnavailableError | SlidegateError

/** Carries batches to where they are decided, and back what has become of them. */
export interface Transport {
  /** For messages: what it carries them to. */
  readonly server: string
  /** Whether calls keep their order; where they do not, they are better sent one by one. */
  readonly isOrdered: boolean
  /** Whether a call leaves at once. */
  readonly isReady: boolean
  /** @param place which of the calls in flight it is, from 0: no two have the same at a time */
  send(batch: readonly Request[], place: number): Promise<readonly Result[]>
  /** A call has not been answered until all had given up. */
  lost(): void
}

/** For so long after a failure the ops of a bucket travel one by one; after one that follows, for twice as long, up to a bound. */
const MIN_SINGLY_MS = 1000
const MAX_SINGLY_MS = 8000

/** By the script. */
export class ScriptTransport implements Transport {
  readonly #connection: Connection
  readonly #script: ScriptRunner
  readonly #keyspace: Keyspace
  #receipts: Receipts | undefined
  #singlyMs = MIN_SINGLY_MS
  #singlyUntilMs = 0

  constructor(connection: Connection, keyspace: Keyspace, counts?: CallCounts) {
    this.#connection = connection
    this.#script = connection.scriptRunner(counts)
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

  async #sendToSlot(batch: readonly Request[], receipt: Receipt | undefined): Promise<readonly Result[]> {
    if (performance.now() < this.#singlyUntilMs) return this.#sendSingly(batch)
    try {
      const results = await this.#call(batch, receipt)
      this.#singlyMs = MIN_SINGLY_MS
      return results
    } catch (error) {
      if (!isTryAgain(error)) throw error
      // The slot is on its way to another server, and some of the keys are there already. One key is always either here or there.
      this.#goSingly()
      return this.#sendSingly(batch)
    }
  }

  /**
   * On a Cluster, the slot may be on its way to another server. Clients that send again what has failed wait for its
   * arrival, longer than anybody here does, and others say so.
   */
  lost(): void {
    if (this.#connection.resends) this.#goSingly()
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
    const reply = await this.#script.run(keys, encode(batch, receipt?.word))
    return decode(batch, reply, this.#keyspace.buckets)
  }

  /** On a Cluster it lies in the slot of the keys, which for one transport is always the same; elsewhere anywhere. */
  #receiptFor(batch: readonly Request[], place: number): Receipt {
    if (this.#receipts === undefined) {
      const bucket = this.#connection.isCluster ? this.#keyspace.bucketOf(batch[0]!.op) : 0
      this.#receipts = new Receipts(this.#keyspace.receiptHead(bucket))
    }
    return this.#receipts.next(place)
  }
}

function isTryAgain(error: unknown): boolean {
  return error instanceof Error && /TRYAGAIN|TryAgain/.test(error.message)
}
