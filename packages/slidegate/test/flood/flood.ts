import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { memoryStore } from '../../src/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { bytesInUse } from '../matrix/meter.ts'
import { Collections, Pauses, type Spread, spreadOf } from './pauses.ts'
import { VICTIMS, type Wave, wavesOn } from './waves.ts'

export interface FloodOptions {
  /** Foreign keys, all in all. */
  readonly keys: number
  /** Keys that the store holds at most. */
  readonly maxKeys: number
  /** How often each wave comes, from 4 on: a quarter of the run has to see all of them. */
  readonly rounds: number
  /** For which no decision may stop the process. */
  readonly pauseMaxMs: number
  /** Hears how it goes. */
  log?(line: string): void
}

export interface FloodReport {
  readonly keys: number
  readonly seconds: number
  readonly held: number
  readonly evicted: number
  /** Requests of keys at their limit, all of which must have been denied. */
  readonly probes: number
  /** Of single decisions: on the wall, and for which this process was at work itself. */
  readonly pauses: Spread
  readonly ownPauses: Spread
  /** Of a loop that does nothing, in between, for a tenth of the time: what the machine is like. */
  readonly controlPauses: Spread
  readonly collections: Spread
  /** The longest that the event loop was late, in turns of 500 decisions. */
  readonly loopDelayMs: number
  /** After garbage was collected: most of the second quarter of the run, and of the last; in millions of bytes. */
  readonly inUse: readonly [number, number]
  /** Before that: least of these quarters, for between its collections V8 takes more for a while; and most of all. */
  readonly rss: readonly [number, number]
  readonly rssMost: number
  readonly complaints: readonly string[]
}

/** Foreign keys from one probe to the next, and from one turn of the event loop. */
const PROBE_EVERY = 100
const TURN_EVERY = 500

const GROWN_MAX = 8e6
const RSS_GROWN_MAX = 64e6
const RSS_MAX = 512e6

/** Floods one store with wave after wave of keys that were never there before. */
export async function flood(options: FloodOptions): Promise<FloodReport> {
  const { keys, maxKeys, rounds, pauseMaxMs, log = () => {} } = options
  const clock = new ManualClock()
  const store = memoryStore({ maxKeys, onFull: 'deny', clock: clock.now })
  const waves = wavesOn(store, clock)
  const run = new Run()
  const startMs = performance.now()
  const stretch = Math.ceil(keys / waves.length / rounds)
  const looks: NodeJS.MemoryUsage[] = []
  const inUse: number[] = []
  for (let round = 1; round <= rounds; round++) {
    for (const wave of waves) {
      await run.ask(wave, stretch)
      clock.advance(1000)
      wave.end?.()
      if (store.stats().keys > maxKeys)
        run.complaints.push(`${wave.name}: ${store.stats().keys} keys are held`)
    }
    looks.push(process.memoryUsage())
    inUse.push(bytesInUse())
    const seconds = ((performance.now() - startMs) / 1000).toFixed(0)
    const own = JSON.stringify(spreadOf(run.pauses.ownMs))
    log(
      `${seconds} s: ${run.keys} keys, ${inUse.at(-1)} bytes in use, rss ${looks.at(-1)!.rss}, own pauses ${own}`,
    )
  }
  for (const wave of waves) for (let victim = 0; victim < VICTIMS; victim++) run.probe(wave, victim)
  run.stop()

  const ownPauses = spreadOf(run.pauses.ownMs)
  if (ownPauses.longestMs > pauseMaxMs) run.complaints.push(`a decision took ${ownPauses.longestMs} ms`)
  const rss = looks.map((look) => look.rss)
  const used = quartersOf(inUse, Math.max)
  const taken = quartersOf(rss, Math.min)
  const rssMost = Math.max(...rss)
  run.complaints.push(...grown('memory in use', used, GROWN_MAX), ...grown('rss', taken, RSS_GROWN_MAX))
  if (rssMost > RSS_MAX) run.complaints.push(`rss was ${rssMost} bytes`)
  const millions = (bytes: number) => Number((bytes / 1e6).toFixed(1))
  const { keys: held, evicted } = store.stats()
  return {
    keys: run.keys,
    seconds: Math.round((performance.now() - startMs) / 1000),
    held,
    evicted,
    probes: run.probes,
    pauses: spreadOf(run.pauses.wallMs),
    ownPauses,
    controlPauses: spreadOf(run.control.wallMs),
    collections: spreadOf(run.collections.tookMs),
    loopDelayMs: run.loopDelayMs,
    inUse: [millions(used[0]), millions(used[1])],
    rss: [millions(taken[0]), millions(taken[1])],
    rssMost: millions(rssMost),
    complaints: run.complaints,
  }
}

class Run {
  keys = 0
  probes = 0
  readonly pauses = new Pauses()
  readonly control = new Pauses()
  readonly collections = new Collections()
  readonly complaints: string[] = []
  readonly #delay = monitorEventLoopDelay({ resolution: 10 })

  async ask(wave: Wave, keys: number): Promise<void> {
    this.#delay.enable()
    for (let asked = 0; asked < keys; asked += TURN_EVERY) {
      const fromMs = performance.now()
      this.pauses.begin()
      for (let i = 0; i < TURN_EVERY; i++) {
        wave.ask(this.keys++)
        this.pauses.look()
        // One half of them is asked for all the time, the other only at the end.
        if (i % PROBE_EVERY === 0) {
          this.probe(wave, this.probes % (VICTIMS / 2))
          this.pauses.look()
        }
      }
      const untilMs = performance.now() + (performance.now() - fromMs) / 10
      await nextTurn()
      this.control.begin()
      while (performance.now() < untilMs) this.control.look()
    }
    // What is done between the stretches is not watched.
    this.#delay.disable()
  }

  probe(wave: Wave, victim: number): void {
    this.probes++
    if (!wave.probe(victim)) this.complaints.push(`${wave.name}: a key at its limit was let free`)
  }

  get loopDelayMs(): number {
    return Number((this.#delay.max / 1e6).toFixed(1))
  }

  stop(): void {
    this.collections.stop()
  }
}

type Quarters = readonly [second: number, last: number]

/** Of the second quarter, by which all has been seen twice, and of the last. */
function quartersOf(values: readonly number[], pick: (...values: number[]) => number): Quarters {
  const quarter = values.length / 4
  return [pick(...values.slice(quarter, 2 * quarter)), pick(...values.slice(3 * quarter))]
}

function grown(what: string, [second, last]: Quarters, most: number): string[] {
  return last - second > most ? [`${what} has grown from ${second} to ${last} bytes`] : []
}
