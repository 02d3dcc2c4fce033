// tier: system
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, it, onTestFinished } from 'vitest'
import { ownEnvironment } from '../../../../scripts/own-environment.js'
import { temporaryFolder } from '../support/cli.ts'

// npm only sends signals to the shell of a script, which exits and leaves its program running. So servers replace the shell.

const ROOT = join(import.meta.dirname, '../../../..')
const scriptsIn = (folder: string): Record<string, string> =>
  JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8')).scripts

/** Runs npm with the scripts of the repository, but without building or installing. */
function npm(words: readonly string[]) {
  const folder = temporaryFolder()
  folder.write('package.json', JSON.stringify({ scripts: { ...scriptsIn('.'), build: 'true' } }))
  for (const name of ['packages', 'examples']) symlinkSync(join(ROOT, name), join(folder.path, name))
  mkdirSync(join(folder.path, 'scripts'))
  folder.write('scripts/install.js', '')
  const child = spawn('npm', words, {
    cwd: folder.path,
    env: { ...ownEnvironment(), PORT: '0', REDIS_URL: '' },
    stdio: ['ignore', 'pipe', 'inherit'],
    // A separate process group, so that nothing stays behind.
    detached: true,
  })
  onTestFinished(() => {
    try {
      process.kill(-child.pid!, 'SIGKILL')
    } catch {
      // All processes have ended.
    }
    folder.remove()
  })
  return child
}

it.each([
  ['npm start', ['start', '--', '--http', '127.0.0.1:0']],
  ['npm run example express', ['run', 'example', 'express']],
])('the server of `%s` stops with npm', async (_, words) => {
  const child = npm(words)
  let url: string | undefined
  for await (const line of createInterface(child.stdout)) {
    url = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0]
    if (url !== undefined) break
  }
  child.stdout.resume()
  const isServed = () =>
    fetch(url!).then(
      () => true,
      () => false,
    )
  expect(await isServed()).toBe(true)
  child.kill('SIGTERM')
  await once(child, 'exit')
  await expect.poll(isServed).toBe(false)
})

it.each([
  ['.', ['start', 'demo', 'example', 'docs:serve']],
  ['examples', Object.keys(scriptsIn('examples'))],
  ['docs', ['dev', 'serve']],
])('each script in %s that starts a server replaces its shell', (folder, names) => {
  for (const name of names) {
    expect(scriptsIn(folder)[name], name).toMatch(/(^|&& )(\w+=\S+ )?exec [^&|;]+$/)
  }
})
