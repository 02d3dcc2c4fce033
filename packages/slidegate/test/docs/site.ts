import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'
import { siteServer } from '../../../../docs/.vitepress/serve.js'
import { ROOT } from './markdown.ts'

/** As where several projects share a host. */
const BASE = '/slidegate/'

export interface BuiltSite extends AsyncDisposable {
  /** What was said while it was built. */
  readonly log: string
  readonly base: string
  /** Where it is served on this machine, without a slash at its end. */
  readonly url: string
  /** The files of it that end so, from the root of the site, with what is in them. */
  files(ending: string): Promise<Map<string, string>>
}

/** The site, built anew and served. `await using` removes it. */
export async function buildSite(): Promise<BuiltSite> {
  const folder = await mkdtemp(join(tmpdir(), 'slidegate-site-'))
  const remove = () => rm(folder, { recursive: true, force: true })
  const log = await build(folder).catch(async (error) => {
    await remove()
    throw error
  })
  const server = siteServer(folder, BASE).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    log,
    base: BASE,
    url: `http://127.0.0.1:${port}${BASE.slice(0, -1)}`,
    files: async (ending) => {
      const entries = await readdir(folder, { recursive: true, withFileTypes: true })
      const names = entries
        .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
        .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
        .sort()
      const contents = names.map(async (name) => [name, await readFile(join(folder, name), 'utf8')] as const)
      return new Map(await Promise.all(contents))
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await remove()
    },
  }
}

async function build(folder: string): Promise<string> {
  let log = ''
  for (const [script, ...args] of [
    ['docs/.vitepress/reference.js'],
    ['docs/node_modules/vitepress/bin/vitepress.js', 'build', 'docs', '--base', BASE, '--outDir', folder],
  ]) {
    const env = { ...process.env, NODE_ENV: 'production' }
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [script!, ...args], {
      cwd: ROOT,
      env,
    })
    log += `${stdout}${stderr}`
  }
  return log
}
