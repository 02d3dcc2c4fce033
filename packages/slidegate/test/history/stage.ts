import { createLimiter, type Limiter } from '../../src/index.ts'
import type { Store } from '../../src/stores/store.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { type Limiters, START_MS, type Step } from './alphabet.ts'
import { ruledBy } from './declarations.ts'
import type { Ruled } from './oracle.ts'
import type { Result } from './result.ts'
import { StorePlayer } from './store-player.ts'
import { type Told, waited } from './tree.ts'

/** A store that many histories share, each with keys of its own. */
export class Stage {
  readonly #clock = new ManualClock()
  readonly #limiters: readonly Limiter[]
  readonly #ruled: readonly (readonly Ruled[])[]
  #played = 0

  constructor(limiters: Limiters, storeOf: (clock: ManualClock) => Store) {
    const store = storeOf(this.#clock)
    this.#ruled = limiters.map(ruledBy)
    this.#limiters = this.#ruled.map((ruled) =>
      createLimiter({
        name: 'stage',
        limits: ruled.map(({ limit }) => limit),
        store,
        timeoutMs: 30_000,
      }),
    )
  }

  /** Plays a history; answers what the store says to its last step. */
  async last({ steps }: Told): Promise<Result | undefined> {
    const players = this.#players()
    let nowMs = START_MS
    let result: Result | undefined
    for (const step of steps) {
      nowMs += waited(step)
      result = await this.#ask(players, step, nowMs)
    }
    return result
  }

  /** Plays many, the same step of all at once; answers what the store says to each step. */
  async all(told: readonly Told[]): Promise<(Result | undefined)[][]> {
    const scenes = told.map(({ steps }) => {
      const scene: { players: StorePlayer[]; nowMs: number; results: (Result | undefined)[] } = {
        players: this.#players(),
        nowMs: START_MS,
        results: [],
      }
      return { ...scene, steps }
    })
    const longest = Math.max(...told.map(({ steps }) => steps.length))
    for (let place = 0; place < longest; place++) {
      const answers = scenes.map(async (scene) => {
        const step = scene.steps[place]
        if (step === undefined) return
        scene.nowMs += waited(step)
        scene.results[place] = await this.#ask(scene.players, step, scene.nowMs)
      })
      await Promise.all(answers)
    }
    return scenes.map(({ results }) => results)
  }

  close(): void {
    for (const limiter of this.#limiters) limiter.close()
  }

  #players(): StorePlayer[] {
    const name = this.#played++
    return ['a', 'b'].map((key) => new StorePlayer(this.#ruled, this.#limiters, `${name}${key}`))
  }

  async #ask(
    players: readonly StorePlayer[],
    { key, event }: Step,
    nowMs: number,
  ): Promise<Result | undefined> {
    if (event.type === 'wait') return undefined
    this.#clock.set(nowMs)
    const results = await players[key]!.results(event)
    return results[0]
  }
}
