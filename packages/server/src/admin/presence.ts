// Tracks other processes by their heartbeats. Remembers killed processes for a while.

import type { GoneInstance, InstanceStatus } from './api-types.ts'

/** A process, as it announces itself to the others. */
export interface Process extends Omit<InstanceStatus, 'isSelf' | 'perSecond' | 'configuration'> {
  /** Identifies the process. All processes of an instance share `id`. */
  readonly process: string
}

/** A process that is silent for this long is no longer counted. */
const SILENT_MS = 3500

/** A silent process counts as killed after this many of our own heartbeats. Only those that came back are counted. */
const SILENT_ECHOES = 4

/** How long a killed instance is remembered. */
const REMEMBER_MS = 15 * 60_000

/** The maximum number of other processes to track, including those that are gone. */
const MAX_OTHERS = 256

interface Known {
  readonly info: Process
  /** The process's decisions in the second before its last heartbeat. */
  readonly perSecond: number
  /** When the last heartbeat arrived, on the monotonic clock. */
  readonly heardAtMs: number
  /** When the last heartbeat arrived, on the wall clock. */
  readonly atMs: number
  /** Number of our own heartbeats that had come back from Redis by then. */
  readonly echoes: number
}

/** The other processes that share the store. */
export class Presence {
  readonly #now: () => number
  readonly #known = new Map<string, Known>()
  #echoes = 0

  /** @param now a monotonic clock, in milliseconds */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Call this when one of our own heartbeats comes back. It proves that Redis delivers messages. */
  echoed(): void {
    this.#echoes++
  }

  heard(info: Process, perSecond: number): void {
    const nowMs = this.#now()
    const { process } = info
    if (!this.#known.has(process) && this.#known.size >= MAX_OTHERS && !this.#makeRoom(nowMs)) return
    this.#known.delete(process)
    this.#known.set(process, {
      info,
      perSecond,
      heardAtMs: nowMs,
      atMs: Date.now(),
      echoes: this.#echoes,
    })
  }

  /** Immediately removes a process that has announced its shutdown. */
  left(process: string): void {
    this.#known.delete(process)
  }

  /** Returns a process unless it is silent. */
  get(process: string): Process | undefined {
    const known = this.#known.get(process)
    return known === undefined || this.#isSilent(known) ? undefined : known.info
  }

  /** Returns the processes that aren't silent. */
  present(): readonly Process[] {
    return Array.from(this.#known.values())
      .filter((known) => !this.#isSilent(known))
      .map(({ info }) => info)
  }

  /** Returns the instances that disappeared in the last 15 minutes without signing off, latest first. */
  gone(): readonly GoneInstance[] {
    const oldestMs = this.#now() - REMEMBER_MS
    const present = new Set(this.present().map(({ id }) => id))
    const found = new Map<string, Known>()
    for (const [process, known] of this.#known) {
      const { id } = known.info
      if (known.heardAtMs < oldestMs) this.#known.delete(process)
      else if (!present.has(id) && this.#isGone(known)) found.set(id, withWorker(found.get(id), known))
    }
    return Array.from(found.values(), ({ info: { process: _, ...info }, atMs, perSecond }) => {
      return { ...info, goneSinceMs: atMs, lastPerSecond: perSecond }
    }).reverse()
  }

  #isGone(known: Known): boolean {
    return this.#isSilent(known) && this.#echoes - known.echoes >= SILENT_ECHOES
  }

  #isSilent({ heardAtMs }: Known): boolean {
    return this.#now() - heardAtMs > SILENT_MS
  }

  /** Forgets the process that was heard from least recently, if it is silent. Returns whether it was forgotten. */
  #makeRoom(nowMs: number): boolean {
    const [process, { heardAtMs }] = this.#known.entries().next().value!
    return nowMs - heardAtMs > SILENT_MS && this.#known.delete(process)
  }
}

/** Adds up the rates of workers that exited at about the same time. A worker that exited earlier had been replaced. */
function withWorker(earlier: Known | undefined, known: Known): Known {
  if (earlier === undefined || known.heardAtMs - earlier.heardAtMs > SILENT_MS) return known
  return { ...known, perSecond: earlier.perSecond + known.perSecond }
}
