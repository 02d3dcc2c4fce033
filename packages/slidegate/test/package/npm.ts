import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll } from 'vitest'
import { ownEnvironment } from '../../../../scripts/own-environment.js'
import { ROOT } from '../docs/markdown.ts'

export interface Ran {
  readonly stdout: string
  readonly stderr: string
}

/** Runs npm, optionally with the given Node program. Prefers its cache. */
export async function npm(cwd: string, words: readonly string[], node?: string): Promise<Ran> {
  const env = {
    ...ownEnvironment(),
    ...(node && { PATH: `${join(node, '..')}${delimiter}${process.env.PATH}` }),
  }
  const settings = ['--prefer-offline', '--no-audit', '--no-fund']
  return promisify(execFile)('npm', [...words, ...settings], { cwd, env, maxBuffer: 2 ** 26 })
}

/** Installs packages that are programs, if they are missing. They stay for the next run. Returns their node_modules. */
export async function installPrograms(
  name: string,
  dependencies: Readonly<Record<string, string>>,
): Promise<string> {
  const folder = join(ROOT, 'node_modules/.cache', name)
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies }))
  await npm(folder, ['install'])
  return join(folder, 'node_modules')
}

const folders: string[] = []
// Registered at the top level, since Vitest ignores hooks that a hook adds.
afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true }))))

/** Creates a folder outside the repository. It is deleted after the last test of the file. */
export async function emptyFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'slidegate-installed-'))
  folders.push(folder)
  return folder
}

export interface Packed {
  readonly tarball: string
  /** The size of each file. */
  readonly files: ReadonlyMap<string, number>
  readonly packedBytes: number
}

/** Packs a built package of this workspace as npm would publish it. */
export async function pack(name: string, folder: string): Promise<Packed> {
  const { stdout } = await npm(join(ROOT, 'packages', name), ['pack', '--json', '--pack-destination', folder])
  const [packed] = JSON.parse(stdout) as [
    { filename: string; size: number; files: { path: string; size: number }[] },
  ]
  return {
    tarball: join(folder, packed.filename),
    files: new Map(packed.files.map(({ path, size }) => [path, size])),
    packedBytes: packed.size,
  }
}

export interface Manifest {
  readonly name: string
  readonly version: string
  readonly exports: Readonly<Record<string, { readonly types: string; readonly default: string } | string>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly peerDependencies: Readonly<Record<string, string>>
}

export async function manifestOf(name: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(ROOT, 'packages', name, 'package.json'), 'utf8'))
}

/** Returns all entry points of the library: `slidegate`, `slidegate/redis` and so on. */
export function importsOf({ name, exports }: Manifest): string[] {
  return Object.entries(exports).flatMap(([path, to]) =>
    typeof to === 'string' ? [] : [path.replace('.', name)],
  )
}
