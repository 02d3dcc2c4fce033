import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'rolldown'
import { afterAll } from 'vitest'

/** A folder from which programs find the installed packages. */
const CACHE = fileURLToPath(new URL('../../node_modules/.cache', import.meta.url))

/** Bundles a program that imports TypeScript modules, so that Node can run it. Returns its path until the tests end. */
export async function bundled(program: URL): Promise<string> {
  await mkdir(CACHE, { recursive: true })
  const folder = await mkdtemp(join(CACHE, 'bundled-'))
  afterAll(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'program.mjs')
  await build({ input: fileURLToPath(program), external: /^[^./]/, output: { file, codeSplitting: false } })
  return file
}
