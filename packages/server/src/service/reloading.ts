// Reloads the configuration when its files change.

import { statSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import type { Logger } from 'pino'
import { messageOf } from '#replay/errors.js'
import { type Every, everyByTimer } from '../admin/timer.ts'
import type { LoadedConfig } from '../config/load.ts'
import { ConfigError } from '../config/problem.ts'
import type { Config } from '../config/schema.ts'
import { grpcAddressOf } from './listeners.ts'
import type { RunningService } from './running.ts'

interface ReloadingOptions {
  /** Reads the configuration. @throws {ConfigError} */
  readonly load: () => LoadedConfig
  /** What the service was started with. */
  readonly loaded: LoadedConfig
  readonly running: Pick<RunningService, 'reload' | 'readiness' | 'metrics'>
  readonly log: Logger
  /** Called after another configuration came into force. */
  readonly reloaded?: () => void
  readonly every?: Every | undefined
}

/** What became of an attempt: it is in force, it was already, or it is wrong. */
type Reload = 'ok' | 'unchanged' | 'error'

/**
 * Files are looked at so often. Whoever waits to be told of changes misses those of mounted volumes and of files that are
 * replaced; what is looked up follows links, as those that Kubernetes swaps.
 */
const LOOK_MS = 500
/** A configuration that is wrong is read again after so many looks: what it names may have come meanwhile. */
const LOOKS_UNTIL_RETRY = 20

/** Keeps a service on its configuration as it stands in the files: what is wrong changes nothing. */
export class Reloading {
  readonly #options: ReloadingOptions
  readonly #stop: () => void
  #inForce: LoadedConfig
  /** Of the files, when they were looked at last. */
  #seen = ''
  /** Of the files, when they were read last. */
  #read = ''
  #looksSinceWrong = 0

  constructor(options: ReloadingOptions) {
    this.#options = options
    this.#inForce = options.loaded
    this.#stop = (options.every ?? everyByTimer)(LOOK_MS, () => this.look())
  }

  /** Reads the files if they have changed, and did not since the last look: somebody may still be writing. */
  look(): void {
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
    if (result === 'unchanged') this.#options.log.info('the configuration is as it was')
    return result
  }

  close(): void {
    this.#stop()
  }

  #retry(): void {
    const { configProblem } = this.#options.running.readiness
    if (configProblem === undefined || ++this.#looksSinceWrong < LOOKS_UNTIL_RETRY) return
    this.#attempt(configProblem)
  }

  /** @param known what was said of it already */
  #attempt(known?: string): Reload {
    const { load, loaded: started, running, log } = this.#options
    const before = this.#inForce
    this.#looksSinceWrong = 0
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
      if (problem !== known) this.#refuse(problem, error)
      return 'error'
    }
    this.#inForce = loaded
    running.readiness.configProblem = undefined
    running.metrics.configValid.set(1)
    running.metrics.reloads.inc({ result: 'ok' })
    const level = loaded.config.logging?.level
    if (level !== before.config.logging?.level) log.level = level ?? 'info'
    const later = fromNextStart(loaded.config, started.config)
    log.info({ limiters: Object.keys(loaded.config.limiters).length }, 'the configuration is in force')
    this.#options.reloaded?.()
    if (later.length > 0)
      log.warn({ parts: later }, 'these parts of the configuration count from the next start')
    return 'ok'
  }

  #refuse(problem: string, error: unknown): void {
    const { running, log } = this.#options
    running.readiness.configProblem = problem
    running.metrics.configValid.set(0)
    running.metrics.reloads.inc({ result: 'error' })
    const problems = error instanceof ConfigError ? problem.split('\n') : [problem]
    log.error({ problems }, 'the configuration is wrong: the one before stays in force')
  }
}

/** Parts of a configuration that only a start puts in force. */
function fromNextStart(config: Config, started: Config): readonly string[] {
  const listenersOf = (each: Config) => [each.listen, grpcAddressOf(each)]
  return [
    ...(isDeepStrictEqual(listenersOf(config), listenersOf(started)) ? [] : ['listen']),
    ...(isDeepStrictEqual(config.store, started.store) ? [] : ['store']),
    ...(isDeepStrictEqual(capsOf(config), capsOf(started)) ? [] : ['caps']),
    ...(isDeepStrictEqual(config.tracing, started.tracing) ? [] : ['tracing']),
  ]
}

/** The caps that servers are made with. */
function capsOf(config: Config): readonly unknown[] {
  const { bodyBytes, descriptors, inFlight } = config.caps ?? {}
  return grpcAddressOf(config) === undefined ? [bodyBytes] : [bodyBytes, descriptors, inFlight]
}

function textOf({ config, domains }: LoadedConfig): string {
  return JSON.stringify([config, domains?.describe()])
}

/** Another one when files were written or replaced, or a folder has others. */
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
