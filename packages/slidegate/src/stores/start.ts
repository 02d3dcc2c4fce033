// A store's first connection.

import { backgroundTimer } from '../runtime/platform.ts'

export const START_MS = 2000

const LOOK_MS = 20

/** A wait of up to 2 s for a store's first connection. Time during which the process is blocked doesn't count. */
export class Start {
  /** Resolves when the store is connected or has failed. `undefined` after that. */
  whenOver: Promise<void> | undefined
  #resolve!: () => void

  /** @param isOver called every 20 ms; returns true once the connection is open or has failed */
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
