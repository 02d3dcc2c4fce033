// Reads all rule files, one domain each.

import { readdirSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { messageOf } from '../../../replay/src/errors.ts'
import { ConfigError, type ConfigProblem } from '../config/problem.ts'
import type { Domain, Unit } from './domain.ts'
import { Source } from './source.ts'

export class Domains {
  readonly #byName: ReadonlyMap<string, Domain>
  /** The files that were read, and their folders. */
  readonly files: readonly string[]

  constructor(domains: readonly Domain[], files: readonly string[]) {
    this.#byName = new Map(domains.map((domain) => [domain.name, domain]))
    this.files = files
  }

  get(name: string): Domain | undefined {
    return this.#byName.get(name)
  }

  all(): readonly Domain[] {
    return Array.from(this.#byName.values())
  }

  /** All rules, as plain data. */
  describe(): readonly DomainDescription[] {
    return this.all().map((domain) => ({
      domain: domain.name,
      limiter: domain.limiterName,
      rules: Array.from(domain.rules(), ({ id, path, unit, requestsPerUnit, isUnlimited, isShadow }) => ({
        ...{ id, path, requestsPerUnit: isUnlimited ? null : requestsPerUnit, unit: unit ?? null },
        ...(isShadow && { shadow: true }),
      })),
    }))
  }
}

interface DomainDescription {
  readonly domain: string
  readonly limiter: string
  readonly rules: readonly {
    readonly id: string
    readonly path: string
    readonly requestsPerUnit: number | null
    readonly unit: Unit | null
    readonly shadow?: boolean
  }[]
}

/**
 * Reads files in the format of envoyproxy/ratelimit. In a folder, it reads all .yaml, .yml and .json files.
 *
 * @param folder the base folder for relative names
 * @throws {ConfigError}
 */
export function readDomains(names: readonly string[], folder: string): Domains {
  const problems: ConfigProblem[] = []
  const domains = new Map<string, { readonly domain: Domain; readonly file: string }>()
  const watched: string[] = []
  for (const name of names) {
    const { files, folders, problem } = filesOf(resolve(folder, name))
    watched.push(...folders, ...files)
    if (problem !== undefined) problems.push(problem)
    for (const file of files) {
      try {
        const source = new Source(file)
        const domain = source.domain()
        const before = domains.get(domain.name)
        if (before === undefined) domains.set(domain.name, { domain, file })
        else
          source.complain(
            ['domain'],
            `${before.file} already declares the domain ${JSON.stringify(domain.name)}`,
          )
        if (source.problems.length > 0) throw new ConfigError(source.problems)
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error
        problems.push(...error.problems)
      }
    }
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return new Domains(
    Array.from(domains.values(), ({ domain }) => domain),
    watched,
  )
}

interface Found {
  readonly files: readonly string[]
  readonly folders: readonly string[]
  readonly problem?: ConfigProblem
}

function filesOf(path: string): Found {
  try {
    if (!statSync(path).isDirectory()) return { files: [path], folders: [] }
    const files = readdirSync(path)
      .filter((name) => /^[^.].*\.(yaml|yml|json)$/.test(name))
      .sort()
      .map((name) => join(path, name))
    return { files, folders: [path] }
  } catch (error) {
    const message = `can't read the file or folder: ${messageOf(error)}`
    return { files: [path], folders: [], problem: { file: path, line: 1, column: 1, message } }
  }
}
