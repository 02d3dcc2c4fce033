import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'
import { siteServer } from '../../../../docs/.vitepress/serve.js'
import { ROOT } from './markdown.ts'

/** The base path, as for a project on a shared host. */
const BASE = '/slidegate/'

export interface BuiltSite extends AsyncDisposable {
  /** The output of the build. */
  readonly log: string
  readonly base: string
  /** URL without a trailing slash. */
  readonly url: string
  /** Path in the site -> content. */
  readonly files: ReadonlyMap<string, string>
}

/** Builds and serves the site. `await using` removes it. */
export async function buildSite(): Promise<BuiltSite> {
  const folder = await mkdtemp(join(tmpdir(), 'slidegate-site-'))
  const remove = () => rm(folder, { recursive: true, force: true })
  const log = await build(folder).catch(async (error) => {
    await remove()
    throw error
  })
  const files = await readAll(folder)
  const server = siteServer(folder, BASE).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    log,
    base: BASE,
    url: `http://127.0.0.1:${port}${BASE.slice(0, -1)}`,
    files,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await remove()
    },
  }
}

async function readAll(folder: string): Promise<Map<string, string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const names = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort()
  const contents = names.map(async (name) => [name, await readFile(join(folder, name), 'utf8')] as const)
  return new Map(await Promise.all(contents))
}

/** Runs the documented command. */
async function build(folder: string): Promise<string> {
  const words = ['--prefix', 'docs', 'run', 'site', '--', '--base', BASE, '--outDir', folder]
  const { stdout, stderr } = await promisify(execFile)('npm', words, {
    cwd: ROOT,
    env: { ...process.env, NODE_ENV: 'production' },
  })
  return `${stdout}${stderr}`
}
