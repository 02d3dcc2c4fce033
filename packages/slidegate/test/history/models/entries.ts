import type { Limit } from '../../../src/index.ts'
import type { Entries, Entry, LogModel, Request } from './log-model.ts'

/** Logs that keep individual entries. Each counts for one window from its stamp on. */
abstract class EntriesModel implements LogModel {
  protected readonly windowMs: number
  protected held: readonly Entry[] = []

  constructor(windowMs: number) {
    this.windowMs = windowMs
  }

  abstract copy(): LogModel
  abstract need(nowMs: number, request: Request): number
  abstract charge(limits: readonly Limit[], nowMs: number, request: Request): void
  abstract refund(nowMs: number, atMs: number, request: Request): number

  newest(): number {
    return Math.max(0, ...this.held.map(({ stampMs }) => stampMs))
  }

  restamp(nowMs: number): void {
    const newestMs = this.newest()
    this.held = this.counting(newestMs).map((entry) => ({ ...entry, stampMs: nowMs }))
  }

  /** For a window other than its own, returns the units that are still stored. */
  used(limit: Limit, nowMs: number): number {
    return this.charges(limit, nowMs).reduce((sum, { units }) => sum + units, 0)
  }

  charges({ windowMs }: Limit, nowMs: number): readonly Entry[] {
    return this.counting(nowMs).filter(({ stampMs }) => nowMs - stampMs < windowMs)
  }

  protected counting(nowMs: number): readonly Entry[] {
    return this.held.filter(({ stampMs }) => nowMs - stampMs < this.windowMs)
  }

  protected add(nowMs: number, name: string, units: number): void {
    this.held = [...this.counting(nowMs), { name, units, stampMs: nowMs }]
  }

  protected renew(nowMs: number, name: string): boolean {
    const entry = this.find(nowMs, name)
    if (entry === undefined) return false
    this.held = [...this.held.filter((each) => each !== entry), { ...entry, stampMs: nowMs }]
    return true
  }

  protected remove(nowMs: number, name: string): boolean {
    const entry = this.find(nowMs, name)
    this.held = this.held.filter((each) => each !== entry)
    return entry !== undefined
  }

  protected find(nowMs: number, name: string): Entry | undefined {
    return this.counting(nowMs).find((entry) => entry.name === name)
  }

  protected entriesOf(are: Entries['are']): Entries {
    return {
      are,
      find: (nowMs, name) => this.find(nowMs, name)?.stampMs,
      renew: (nowMs, name) => this.renew(nowMs, name),
      list: (nowMs) => this.counting(nowMs),
      remove: (nowMs, name) => this.remove(nowMs, name),
    }
  }
}

/** Requests by id, or holders while they hold a slot. */
export class RequestsModel extends EntriesModel {
  readonly #are: 'request' | 'holder' | 'nameless'
  readonly entries: Entries

  constructor(windowMs: number, are: 'request' | 'holder' | 'nameless') {
    super(windowMs)
    this.#are = are
    this.entries = this.entriesOf(are)
  }

  copy(): RequestsModel {
    const copied = new RequestsModel(this.windowMs, this.#are)
    copied.held = this.held
    return copied
  }

  need(_nowMs: number, request: Request): number {
    return request.units
  }

  charge(_limits: readonly Limit[], nowMs: number, { id, units }: Request): void {
    this.add(nowMs, id, units)
  }

  /** Refunds all units of the request, or none. */
  refund(nowMs: number, atMs: number, { id, units }: Request): number {
    const isIt = ({ name, stampMs }: Entry) => name === id && (this.#are === 'holder' || stampMs === atMs)
    const entry = this.counting(nowMs).find(isIt)
    if (entry?.units !== units) return 0
    this.held = this.held.filter((each) => each !== entry)
    return units
  }
}

/** Distinct values. Each takes one unit, and is kept as long as it recurs within the window. */
export class ValuesModel extends EntriesModel {
  readonly entries: Entries = this.entriesOf('value')

  copy(): ValuesModel {
    const copied = new ValuesModel(this.windowMs)
    copied.held = this.held
    return copied
  }

  need(nowMs: number, { value }: Request): number {
    return this.find(nowMs, value) === undefined ? 1 : 0
  }

  charge(_limits: readonly Limit[], nowMs: number, { value }: Request): void {
    if (!this.renew(nowMs, value)) this.add(nowMs, value, 1)
  }

  refund(): number {
    return 0
  }
}
