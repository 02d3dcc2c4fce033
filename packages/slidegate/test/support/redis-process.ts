import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

/** A redis-server process for one test. It can be killed, restarted and frozen. */
export interface RedisProcess {
  readonly port: number
  /** The process id while it runs. */
  readonly pid: number
  /** Whether it runs and isn't frozen. */
  readonly isAwake: boolean
  /** Kills the process, like a crash. The port stays reserved for {@link start}. */
  kill(): Promise<void>
  /** Starts it again on the same port, with the data in its folder. */
  start(): Promise<void>
  /** Stops its execution until it is thawed. Its connections stay open. */
  freeze(): void
  thaw(): void
  /** Ends the process and removes its folder. */
  stop(): Promise<void>
}

export interface ProcessOptions {
  readonly port: number
  /** The arguments after `redis-server`. The folder survives restarts. */
  words(folder: string): readonly string[]
  /** Whether the server responds. Default: a PING in plain text. */
  answers?(port: number): Promise<boolean>
  readonly env?: Readonly<Record<string, string>>
  /** A program that runs redis-server, with its options. */
  readonly under?: readonly string[]
}

const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** Starts a redis-server in a temporary folder, and waits until it responds. */
export async function startProcess(options: ProcessOptions): Promise<RedisProcess> {
  if (process.env.TEST_TIER === 'unit') {
    throw new Error(
      'A unit test started redis-server. Make "// tier: integration" the first line of the test file.',
    )
  }
  const { port, answers = answersPing } = options
  const folder = await mkdtemp(join(tmpdir(), 'slidegate-redis-'))
  let child: ChildProcess | undefined
  let isFrozen = false

  const runs = () => child !== undefined && child.exitCode === null && child.signalCode === null

  async function start(): Promise<void> {
    if (runs()) throw new Error(`redis-server on port ${port} is already running`)
    isFrozen = false
    const [program, ...words] = [...(options.under ?? []), 'redis-server', ...options.words(folder)]
    const started = spawn(program!, words, {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, ...options.env },
    })
    child = started
    running.add(started)
    started.once('exit', () => running.delete(started))
    for (let attempt = 0; attempt < 3000; attempt++) {
      if (!runs()) throw new Error(`redis-server exited with ${started.exitCode ?? started.signalCode}`)
      if (await answers(port)) return
      await delay(10)
    }
    throw new Error(`redis-server didn't respond on port ${port}`)
  }

  async function kill(): Promise<void> {
    if (child === undefined || !runs()) return
    const ending = child
    const ended = new Promise((resolve) => ending.once('exit', resolve))
    ending.kill('SIGKILL')
    await ended
  }

  async function stop(): Promise<void> {
    await kill()
    await rm(folder, { recursive: true, force: true })
  }

  try {
    await start()
  } catch (error) {
    await stop()
    throw error
  }
  return {
    port,
    get pid() {
      return child?.pid ?? 0
    },
    get isAwake() {
      return runs() && !isFrozen
    },
    kill,
    start,
    freeze() {
      child?.kill('SIGSTOP')
      isFrozen = true
    },
    thaw() {
      child?.kill('SIGCONT')
      isFrozen = false
    },
    stop,
  }
}

function answersPing(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'))
    socket.once('data', (data) => {
      socket.destroy()
      // A server that requires a password is up as well.
      resolve(/^(\+PONG|-NOAUTH)/.test(data.toString()))
    })
    socket.once('error', () => resolve(false))
    socket.once('close', () => resolve(false))
  })
}
