import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'

export const EXAMPLES: string = join(import.meta.dirname, '../..')

/** The scripts that `npm run example <name>` runs. */
export const SCRIPTS: Readonly<Record<string, string>> = JSON.parse(
  readFileSync(join(EXAMPLES, 'package.json'), 'utf8'),
).scripts

/** Runs an example to its end. Resolves to its output. */
export async function played(name: string): Promise<string> {
  const child = start(name)
  const [printed, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  if (code !== 0) throw new Error(`The example exited with code ${code}. Its output:\n${printed}`)
  return printed
}

/** Starts an example, and stops it when the test ends. Resolves to its URL. */
export async function served(name: string, ...words: string[]): Promise<string> {
  const child = start(name, words)
  for await (const line of createInterface(child.stdout)) {
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0]
    if (url !== undefined) {
      child.stdout.resume()
      return url
    }
  }
  throw new Error('The example exited without printing a URL')
}

function start(name: string, words: string[] = []): ChildProcessByStdio<null, Readable, null> {
  const { NODE_ENV: _, REDIS_URL: __, ...env } = process.env
  // The same PATH as npm uses for scripts.
  const programs = ['', '..'].map((above) => join(EXAMPLES, above, 'node_modules/.bin'))
  const child = spawn([SCRIPTS[name], ...words].join(' '), {
    cwd: EXAMPLES,
    env: { ...env, PORT: '0', PATH: [...programs, env.PATH].join(delimiter) },
    stdio: ['ignore', 'pipe', 'inherit'],
    shell: true,
    // Its own process group, to stop child processes too.
    detached: true,
  })
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    process.kill(-child.pid!)
    await once(child, 'exit')
  })
  return child
}
