import type { Timed } from '../oracle.ts'

/** Who waits in line, and since when; 0: from now on. */
export interface Ticket {
  readonly id: string
  readonly sinceMs: number
}

interface Standing extends Ticket {
  readonly units: number
  readonly untilMs: number
}

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

  /** Units of those who came before and may be expected to ask again. */
  ahead(nowMs: number, { id, sinceMs }: Ticket): number {
    const comesBefore = (other: Ticket) =>
      sinceMs === 0 || other.sinceMs < sinceMs || (other.sinceMs === sinceMs && other.id < id)
    return this.#others(nowMs, id)
      .filter(comesBefore)
      .reduce((sum, { units }) => sum + units, 0)
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
