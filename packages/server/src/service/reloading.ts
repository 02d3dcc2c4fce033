// Reloads the configuration when its files change.

import { statSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import type { Logger } from 'pino'
import { messageOf } from '../../../replay/src/errors.ts'
import { type Every, everyByTimer } from '../admin/timer.ts'
import type { LoadedConfig } from '../config/load.ts'
import { ConfigError } from '../config/problem.ts'
import type { Config } from '../config/schema.ts'
import { grpcAddressOf } from './listeners.ts'
import type { RunningService } from './running.ts'

interface ReloadingOptions {
  /** Loads the configuration. @throws {ConfigError} */
  readonly load: () => LoadedConfig
  /** The configuration at startup. */
  readonly loaded: LoadedConfig
  readonly running: Pick<RunningService, 'reload' | 'readiness' | 'metrics'>
  readonly log: Logger
  /** Called after a new configuration has taken effect. */
  readonly reloaded?: () => void
  readonly every?: Every | undefined
}

/** The result of a reload: applied, unchanged or invalid. */
type Reload = 'ok' | 'unchanged' | 'error'

/**
 * Milliseconds between checks of the files. Unlike change events, polling works with mounted volumes, replaced files,
 * and links that Kubernetes swaps.
 */
const LOOK_MS = 500
/** An invalid configuration is read again after this many checks. Missing files may exist by then. */
const LOOKS_UNTIL_RETRY = 20

/** Reloads the configuration when its files change. An invalid file changes nothing. */
export class Reloading {
  readonly #options: ReloadingOptions
  readonly #stop: () => void
  #inForce: LoadedConfig
  /** State of the files at the last check. */
  #seen = ''
  /** State of the files when they were last read. */
  #read = ''
  #checksSinceError = 0

  constructor(options: ReloadingOptions) {
    this.#options = options
    this.#inForce = options.loaded
    this.#stop = (options.every ?? everyByTimer)(LOOK_MS, () => this.check())
  }

  /** Reads changed files once they are stable, because a write may be in progress. */
  check(): void {
    const state = stateOf(this.#inForce.files)
    const isStill = state === this.#seen
    this.#seen = state
    if (!isStill) return
    if (state === this.#read) {
      this.#retry()
      return
    }
    this.#read = state
    this.#attempt()
  }

  /** Reads the files now, whether or not they have changed. */
  reload(): Reload {
    this.#seen = stateOf(this.#inForce.files)
    this.#read = this.#seen
    const result = this.#attempt()
    if (result === 'unchanged') this.#options.log.info('the configuration is unchanged')
    return result
  }

  close(): void {
    this.#stop()
  }

  #retry(): void {
    const { configProblem } = this.#options.running.readiness
    if (configProblem === undefined || ++this.#checksSinceError < LOOKS_UNTIL_RETRY) return
    this.#attempt(configProblem)
  }

  /** @param known the problem that has already been logged */
  #attempt(known?: string): Reload {
    const { load, loaded: started, running, log } = this.#options
    const before = this.#inForce
    this.#checksSinceError = 0
    let loaded: LoadedConfig
    try {
      loaded = load()
      if (running.readiness.configProblem === undefined && textOf(loaded) === textOf(before)) {
        this.#inForce = loaded
        return 'unchanged'
      }
      running.reload(loaded)
    } catch (error) {
      const problem = messageOf(error)
      if (problem !== known) this.#reject(problem, error)
      return 'error'
    }
    this.#inForce = loaded
    running.readiness.configProblem = undefined
    running.metrics.configValid.set(1)
    running.metrics.reloads.inc({ result: 'ok' })
    const level = loaded.config.logging?.level
    if (level !== before.config.logging?.level) log.level = level ?? 'info'
    const later = fromNextStart(loaded.config, started.config)
    running.readiness.needsRestart = later.length > 0
    log.info({ limiters: Object.keys(loaded.config.limiters).length }, 'the configuration was applied')
    this.#options.reloaded?.()
    if (later.length > 0)
      log.warn({ parts: later }, 'these parts of the configuration take effect at the next start')
    return 'ok'
  }

  #reject(problem: string, error: unknown): void {
    const { running, log } = this.#options
    running.readiness.configProblem = problem
    running.metrics.configValid.set(0)
    running.metrics.reloads.inc({ result: 'error' })
    const problems = error instanceof ConfigError ? problem.split('\n') : [problem]
    log.error({ problems }, 'the configuration is invalid: the previous one stays active')
  }
}

/** Returns the changed parts of a configuration that take effect only at the next start. */
function fromNextStart(config: Config, started: Config): readonly string[] {
  const listenersOf = (each: Config) => [each.listen, grpcAddressOf(each)]
  return [
    ...(isDeepStrictEqual(listenersOf(config), listenersOf(started)) ? [] : ['listen']),
    ...(isDeepStrictEqual(config.store, started.store) ? [] : ['store']),
    ...(isDeepStrictEqual(capsOf(config), capsOf(started)) ? [] : ['caps']),
    ...(isDeepStrictEqual(config.tracing, started.tracing) ? [] : ['tracing']),
  ]
}

/** The caps that take effect only when the servers are created. */
function capsOf(config: Config): readonly unknown[] {
  const { bodyBytes, descriptors, inFlight } = config.caps ?? {}
  return grpcAddressOf(config) === undefined ? [bodyBytes] : [bodyBytes, descriptors, inFlight]
}

function textOf({ config, domains }: LoadedConfig): string {
  return JSON.stringify([config, domains?.describe()])
}

/** A fingerprint that changes with the files, even if they are replaced. */
function stateOf(files: readonly string[]): string {
  const states = files.map((file) => {
    try {
      const { dev, ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true })
      return [dev, ino, size, mtimeNs, ctimeNs].join(' ')
    } catch (error) {
      return messageOf(error)
    }
  })
  return states.join('\n')
}
