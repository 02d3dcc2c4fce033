/** Where a client is to connect. */
export interface Target {
  readonly port: number
  /** What sentinels call the master, where the port is that of one. */
  readonly masterName?: string
}

/** What a fault needs, and what kind of client. */
export type Place = 'server' | 'proxy' | 'sentinel' | 'cluster'

/** A fault that is ready to happen. */
export interface Scene {
  readonly target: Target
  inject(): Promise<void>
  /** Resolves when the store can be asked again. */
  heal(): Promise<void>
  /** Ends what was started, or makes it fit for the next. */
  end(): Promise<void>
}

export interface Fault {
  /** What it is called on the command line. */
  readonly name: string
  /** What it is called in the table. */
  readonly title: string
  readonly on: Place
  /** Whether requests go without an answer of the store meanwhile. */
  readonly isFelt: 'surely' | 'perhaps' | 'never'
  /** Whether the store still knows afterwards what it has charged. */
  readonly keepsData: boolean
  /** From its beginning until it is healed. */
  readonly lastsMs: number
  /** Where clients notice only by their own timeouts: so long it may take until they are back. Default: a second. */
  readonly backWithinMs?: number
  setUp(): Promise<Scene>
}

/** What makes a fault, and what undoes it. */
export type Course = Pick<Scene, 'inject' | 'heal'>
