// The start and the end of a connection.

import { backgroundTimer } from '../runtime/platform.ts'

export const START_MS = 2000

const LOOK_MS = 20

/**
 * A first connection in progress, for up to 2 s.
 *
 * Time in which the process was blocked doesn't count, because it couldn't connect.
 */
export class Start {
  /** Resolves when it is connected or has failed. `undefined` after that. */
  whenOver: Promise<void> | undefined
  #resolve!: () => void

  /** @param isOver called every 20 ms */
  constructor(isOver: () => boolean = () => false) {
    this.whenOver = new Promise((resolve) => {
      this.#resolve = resolve
    })
    let leftMs = START_MS
    let lastMs = performance.now()
    const look = () => {
      const nowMs = performance.now()
      leftMs -= Math.min(nowMs - lastMs, 2 * LOOK_MS)
      lastMs = nowMs
      if (leftMs <= 0 || isOver()) this.end()
      if (!this.isOver) backgroundTimer(look, LOOK_MS)
    }
    backgroundTimer(look, LOOK_MS)
  }

  get isOver(): boolean {
    return this.whenOver === undefined
  }

  end(): void {
    if (this.isOver) return
    this.whenOver = undefined
    this.#resolve()
  }
}

/** How many milliseconds `close` waits for calls in flight. Most of them time out earlier in the limiter. */
const MAX_CLOSING_MS = 2000

const IDLE_LOOK_MS = 5

export async function whenIdle(isIdle: () => boolean): Promise<void> {
  const untilMs = performance.now() + MAX_CLOSING_MS
  while (!isIdle() && performance.now() < untilMs) {
    await new Promise((resolve) => setTimeout(resolve, IDLE_LOOK_MS))
  }
}
