import type { Timed } from '../oracle.ts'

/** Who waits in line, and since when; 0: from now on. */
export interface Ticket {
  readonly id: string
  readonly sinceMs: number
}

export interface Awaited {
  readonly units: number
  readonly untilMs: number
}

type Standing = Ticket & Awaited

/** Those that wait for a key, each on behalf of one process. */
export class LineModel implements Timed {
  #writtenAtMs = 0
  #waiting: readonly Standing[] = []

  copy(): LineModel {
    const copied = new LineModel()
    copied.#writtenAtMs = this.#writtenAtMs
    copied.#waiting = this.#waiting
    return copied
  }

  newest(): number {
    return this.#writtenAtMs
  }

  /** They ask again, and each says since when it waits. */
  restamp(): void {
    this.#waiting = []
    this.#writtenAtMs = 0
  }

  /** Those who came before and may be expected to ask again: for how many units, and by when. */
  ahead(nowMs: number, { id, sinceMs }: Ticket): readonly Awaited[] {
    const since = sinceMs === 0 ? nowMs : Math.min(sinceMs, nowMs)
    const comesBefore = (other: Ticket) => other.sinceMs < since || (other.sinceMs === since && other.id < id)
    return this.#others(nowMs, id).filter(comesBefore)
  }

  put(nowMs: number, ticket: Ticket, units: number, untilMs: number): void {
    this.#write(nowMs, [...this.#others(nowMs, ticket.id), { ...ticket, units, untilMs }])
  }

  remove(nowMs: number, id: string): void {
    this.#write(nowMs, this.#others(nowMs, id))
  }

  #others(nowMs: number, id: string): readonly Standing[] {
    return this.#waiting.filter((each) => each.id !== id && each.untilMs > nowMs)
  }

  #write(nowMs: number, waiting: readonly Standing[]): void {
    this.#waiting = waiting
    this.#writtenAtMs = waiting.length === 0 ? 0 : Math.max(this.#writtenAtMs, nowMs)
  }
}
