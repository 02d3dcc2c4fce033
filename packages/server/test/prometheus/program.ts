import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../../slidegate/test/support/ports.ts'
import { until } from '../../../slidegate/test/support/until.ts'

const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

export interface Program extends AsyncDisposable {
  readonly url: string
  /** Calls its API and parses the JSON. */
  get<Answer>(path: string, words?: Readonly<Record<string, string>>): Promise<Answer>
}

/** Starts a program of the Prometheus project and waits until it is ready. */
export async function startProgram(
  program: string,
  words: (folder: string, address: string) => readonly string[] | Promise<readonly string[]>,
): Promise<Program> {
  const folder = await mkdtemp(join(tmpdir(), `slidegate-${program}-`))
  const address = `127.0.0.1:${await freePort()}`
  const child = spawn(program, await words(folder, address), { stdio: ['ignore', 'ignore', 'pipe'] })
  running.add(child)
  let complaints = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints += text
  })
  const ended = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      complaints += error.message
      resolve()
    })
    child.once('exit', () => resolve())
  }).then(() => running.delete(child))
  const stop = async () => {
    child.kill('SIGKILL')
    await ended
    await rm(folder, { recursive: true, force: true })
  }
  const url = `http://${address}`
  try {
    await until(`${program}: ${url}`, async () => {
      if (!running.has(child)) return true
      return (await fetch(`${url}/-/ready`)).ok
    })
    if (!running.has(child)) throw new Error(`${program} exited: ${complaints}`)
  } catch (error) {
    await stop()
    throw error
  }
  return {
    url,
    get: async (path, asked = {}) => {
      const answer = await fetch(`${url}${path}?${new URLSearchParams(asked)}`)
      const body = await answer.text()
      if (!answer.ok) throw new Error(`${path} ${JSON.stringify(asked)}: ${body}`)
      return JSON.parse(body)
    },
    [Symbol.asyncDispose]: stop,
  }
}
