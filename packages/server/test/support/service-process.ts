import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const BIN = fileURLToPath(new URL('../../bin/slidegate.js', import.meta.url))

/** The built service in a separate process. Stop it with `await using`. */
export interface ServiceProcess extends AsyncDisposable {
  readonly url: string
  /** The token of its admin link. Undefined if its configuration has tokens. */
  readonly token: string | undefined
  readonly pid: number
  /** Log lines so far. */
  readonly lines: readonly Record<string, unknown>[]
  /** Standard error so far. */
  readonly stderr: string
  kill(signal: NodeJS.Signals): void
  /** Resolves to the log line with this message, which may already exist. */
  says(message: string, times?: number): Promise<Record<string, unknown>>
  /** Resolves to the exit code and signal. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
}

const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** @param words arguments of `slidegate serve`; it listens on a free loopback port */
export async function startProcess(
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<ServiceProcess> {
  const child = spawn(process.execPath, [BIN, 'serve', '--http', '127.0.0.1:0', ...words], {
    env: { ...process.env, REDIS_URL: '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.add(child)
  const lines: Record<string, unknown>[] = []
  const waiting = new Set<() => void>()
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  createInterface(child.stdout).on('line', (line) => {
    lines.push(JSON.parse(line))
    for (const look of waiting) look()
  })
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once('exit', (code, signal) => {
      running.delete(child)
      resolve({ code, signal })
    })
  })
  const says = (message: string, times = 1): Promise<Record<string, unknown>> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const found = lines.filter(({ msg }) => msg === message)
        if (found.length < times) return
        waiting.delete(look)
        resolve(found[times - 1]!)
      }
      waiting.add(look)
      void ended.then(() => reject(new Error(`it ended without logging ${message}: ${stderr}`)))
      look()
    })
  const { http } = await says('slidegate is listening')
  return {
    url: http as string,
    get token() {
      const { adminLink } = lines.findLast((line) => line.adminLink !== undefined) ?? {}
      return adminLink === undefined ? undefined : new URL(`${adminLink}`).searchParams.get('token')!
    },
    pid: child.pid!,
    lines,
    get stderr() {
      return stderr
    },
    says,
    ended,
    kill: (signal) => void child.kill(signal),
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL')
      await ended
    },
  }
}
