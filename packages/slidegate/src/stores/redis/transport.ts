import { asUnavailable, type StoreUnavailableError } from '../../errors.ts'
import type { Outcome } from '../store.ts'
import type { Connection, ScriptRunner } from './client.ts'
import type { Keyspace } from './keyspace.ts'
import { decode, encode, type Request } from './protocol.ts'

/** What became of a request. An error stands for the request that it befell. */
export type Result = Outcome | StoreUnavailableError

/** Carries batches to where they are decided, and back what has become of them. */
export interface Transport {
  /** Whether calls keep their order; where they do not, they are better sent one by one. */
  readonly isOrdered: boolean
  /** Whether a call leaves at once. */
  readonly isReady: boolean
  /** @param place which of the calls in flight it is, from 0: no two have the same at a time */
  send(batch: readonly Request[], place: number): Promise<readonly Result[]>
  /** A call has not been answered until all had given up. */
  lost(): void
}

/** For so long after a failure the ops of a bucket travel one by one. */
const SINGLY_MS = 1000

/** By the script. */
export class ScriptTransport implements Transport {
  readonly #connection: Connection
  readonly #script: ScriptRunner
  readonly #keysOf: Keyspace
  #singlyUntilMs = 0

  constructor(connection: Connection, keysOf: Keyspace) {
    this.#connection = connection
    this.#script = connection.scriptRunner()
    this.#keysOf = keysOf
  }

  get isOrdered(): boolean {
    return this.#script.isLoaded
  }

  get isReady(): boolean {
    return this.#connection.isReady
  }

  async send(batch: readonly Request[], place: number): Promise<readonly Result[]> {
    if (batch.length === 1 || !this.#connection.isCluster) return this.#call(batch, place)
    if (performance.now() < this.#singlyUntilMs) return this.#sendSingly(batch)
    try {
      return await this.#call(batch, place)
    } catch (error) {
      if (!isTryAgain(error)) throw error
      // The slot is on its way to another server, and some of the keys are there already. One key is always either here or there.
      this.lost()
      return this.#sendSingly(batch)
    }
  }

  /** On a Cluster, the slot may be on its way to another server: some clients wait for its arrival, longer than anybody here does. */
  lost(): void {
    if (this.#connection.isCluster) this.#singlyUntilMs = performance.now() + SINGLY_MS
  }

  async #sendSingly(batch: readonly Request[]): Promise<readonly Result[]> {
    return Promise.all(
      batch.map(async (request) => {
        try {
          return (await this.#call([request]))[0]
        } catch (error) {
          return asUnavailable(error)
        }
      }),
    )
  }

  async #call(batch: readonly Request[], _place?: number): Promise<readonly Result[]> {
    const keys: string[] = []
    for (const { op } of batch) this.#keysOf(op.parts, keys)
    return decode(batch, await this.#script.run(keys, encode(batch)))
  }
}

function isTryAgain(error: unknown): boolean {
  return error instanceof Error && error.message.includes('TRYAGAIN')
}
