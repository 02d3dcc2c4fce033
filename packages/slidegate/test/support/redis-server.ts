import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

/** A real redis-server of this test's own: loopback, a free port, a temporary folder, nothing persisted. */
export interface RedisServer {
  readonly port: number
  readonly url: string
  /** The process id, while it runs. */
  readonly pid: number
  /** Ends the process at once, as a crash does. The port stays reserved for {@link start}. */
  kill(): Promise<void>
  /** Starts it again, empty, on the same port. */
  start(): Promise<void>
  /** Ends the process and removes its folder. */
  stop(): Promise<void>
}

/** A port that nobody listens on at the moment. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** Starts a redis-server; `settings` are further command line words, such as `['--maxmemory', '4mb']`. */
export async function startRedis(settings: readonly string[] = []): Promise<RedisServer> {
  const port = await freePort()
  const folder = await mkdtemp(join(tmpdir(), 'slidegate-redis-'))
  let child: ChildProcess | undefined
  const endWithUs = () => child?.kill('SIGKILL')

  async function start(): Promise<void> {
    const words = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder]
    const quiet = ['--save', '', '--appendonly', 'no', '--loglevel', 'warning']
    child = spawn('redis-server', [...words, ...quiet, ...settings], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    process.once('exit', endWithUs)
    for (let attempt = 0; attempt < 500; attempt++) {
      if (child.exitCode !== null) throw new Error(`redis-server ended with code ${child.exitCode}`)
      if (await answersPing(port)) return
      await delay(10)
    }
    throw new Error(`redis-server did not answer on port ${port}`)
  }

  async function kill(): Promise<void> {
    const running = child
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return
    process.off('exit', endWithUs)
    const ended = new Promise((resolve) => running.once('exit', resolve))
    running.kill('SIGKILL')
    await ended
  }

  async function stop(): Promise<void> {
    await kill()
    await rm(folder, { recursive: true, force: true })
  }

  await start()
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    get pid() {
      return child?.pid ?? 0
    },
    kill,
    start,
    stop,
  }
}

function answersPing(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'))
    socket.once('data', (data) => {
      socket.destroy()
      resolve(data.toString().startsWith('+PONG'))
    })
    socket.once('error', () => resolve(false))
  })
}
