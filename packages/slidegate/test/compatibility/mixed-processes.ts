import { fork } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { OverrideChange } from '../../src/index.ts'

/** What a process does with its limiter: five units a second, for the key `ann`. */
export type Order = { readonly nowMs: number } & (
  | { readonly what: 'serve' | 'peek' }
  | { readonly what: 'ask'; readonly url: string }
  | { readonly what: 'open'; readonly port: number; readonly prefix: string; readonly overrides: boolean }
  | { readonly what: 'override'; readonly change: OverrideChange }
  | { readonly what: 'consume'; readonly times: number }
)

export interface Answer {
  readonly url?: string
  readonly used?: number
  readonly admitted?: number
  readonly error?: { readonly name: string; readonly reason?: string; readonly message: string }
}

const BODIES = 'stores/remote/bodies.js'
const VERSION = /VERSION = (\d+);/

/** A build of the package: its `dist`. */
export interface Build extends Disposable {
  readonly folder: string
  /** Of the format in which a client asks a service. */
  readonly wireVersion: number
}

export const thisBuild: Build = buildIn(fileURLToPath(new URL('../../dist', import.meta.url)))

/**
 * Another build: what `OTHER_BUILD` names, the `dist` of a package that was built at another commit; else this one, but for the
 * version in which its clients ask.
 */
export function otherBuild(): Build {
  const { OTHER_BUILD } = process.env
  if (OTHER_BUILD !== undefined) return buildIn(OTHER_BUILD)
  const folder = mkdtempSync(join(tmpdir(), 'slidegate-build-'))
  cpSync(thisBuild.folder, folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  symlinkSync(
    fileURLToPath(new URL('../../../../node_modules', import.meta.url)),
    join(folder, 'node_modules'),
  )
  const bodies = join(folder, BODIES)
  const next = `VERSION = ${thisBuild.wireVersion + 1};`
  writeFileSync(bodies, readFileSync(bodies, 'utf8').replace(VERSION, next))
  return { ...buildIn(folder), [Symbol.dispose]: () => rmSync(folder, { recursive: true }) }
}

function buildIn(folder: string): Build {
  const wireVersion = Number(VERSION.exec(readFileSync(join(folder, BODIES), 'utf8'))![1])
  return { folder, wireVersion, [Symbol.dispose]: () => {} }
}

/** A process on a build, which does one thing after the other. */
export interface Process extends Disposable {
  order(order: Order): Promise<Answer>
}

export function startProcess({ folder }: Build): Process {
  const child = fork(fileURLToPath(new URL('mixed-worker.js', import.meta.url)), [folder])
  const ended = once(child, 'exit').then(([code]) => Promise.reject(new Error(`it has ended with ${code}`)))
  ended.catch(() => {})
  return {
    async order(order) {
      const answer = new Promise<Answer>((resolve) =>
        child.once('message', (told) => resolve(told as Answer)),
      )
      child.send(order)
      return Promise.race([answer, ended])
    },
    [Symbol.dispose]: () => child.kill('SIGKILL'),
  }
}
