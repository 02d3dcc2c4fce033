/** The server that a client connects to. */
export interface Target {
  readonly port: number
  /** The name of the master, if the port belongs to a sentinel. */
  readonly masterName?: string
}

/** The setup that a fault needs, which also selects the clients. */
export type Place = 'server' | 'proxy' | 'sentinel' | 'cluster'

/** A fault that is ready to be injected. */
export interface Scene {
  readonly target: Target
  inject(): Promise<void>
  /** Resolves when the store can be called again. */
  heal(): Promise<void>
  /** Stops what was started, or prepares it for the next fault. */
  end(): Promise<void>
}

export interface Fault {
  /** The name on the command line. */
  readonly name: string
  /** The title in the table. */
  readonly title: string
  readonly on: Place
  /** Whether requests fail to reach the store during the fault. */
  readonly isFelt: 'surely' | 'perhaps' | 'never'
  /** Whether the store keeps its charges. */
  readonly keepsData: boolean
  /** Milliseconds from the start of the fault until it is healed. */
  readonly lastsMs: number
  /** How long clients may take to recover if only their own timeouts detect the fault. Default: 1 s. */
  readonly backWithinMs?: number
  setUp(): Promise<Scene>
}

/** Starts a fault, and ends it. */
export type Course = Pick<Scene, 'inject' | 'heal'>
