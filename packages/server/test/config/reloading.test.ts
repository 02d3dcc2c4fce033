// tier: integration
import { mkdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { Reloading } from '../../src/service/reloading.ts'
import { temporaryFolder } from '../support/cli.ts'
import { withRedis } from '../support/redis.ts'
import { type TestService, testService } from '../support/service.ts'

let folder: ReturnType<typeof temporaryFolder>
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(() => folder.remove())

/** Returns a limiter. Its window is an hour, so that no window passes during a test. */
const limiter = (limit: number) => ({
  timeoutMs: 10_000,
  limits: [{ kind: 'slidingWindow', limit, window: '1h', precision: '1s' }],
})
const configOf = (limit: number, more: object = {}) =>
  JSON.stringify({ limiters: { api: limiter(limit) }, ...more })

interface LogLine {
  readonly msg: string
  readonly problems?: readonly string[]
  readonly parts?: readonly string[]
}

/** A service with a file that is checked only when a test calls `look`. */
class Watched implements AsyncDisposable {
  readonly file: string
  readonly service: TestService
  readonly lines: LogLine[]
  readonly #reloading: Reloading
  readonly #timers: (() => void)[]

  private constructor(
    file: string,
    service: TestService,
    lines: LogLine[],
    reloading: Reloading,
    timers: (() => void)[],
  ) {
    this.file = file
    this.service = service
    this.lines = lines
    this.#reloading = reloading
    this.#timers = timers
  }

  static async start(text: string, file = folder.write('slidegate.json', text)): Promise<Watched> {
    const lines: LogLine[] = []
    const log = pino({ level: 'info' }, { write: (line: string) => lines.push(JSON.parse(line)) })
    const timers: (() => void)[] = []
    const load = () => loadConfig(file, { environment: {} })
    const loaded = load()
    const service = await testService(loaded.config, log)
    const every = (_ms: number, run: () => void) => {
      timers.push(run)
      return () => void timers.splice(timers.indexOf(run), 1)
    }
    const reloading = new Reloading({ load, loaded, running: service, log, every })
    const watched = new Watched(file, service, lines, reloading, timers)
    watched.look(3)
    return watched
  }

  get timers(): number {
    return this.#timers.length
  }

  write(text: string | Buffer): void {
    writeFileSync(this.file, text)
  }

  /** Runs the timers. A change is read at the second check after it. */
  look(times = 2): void {
    for (let i = 0; i < times; i++) for (const run of this.#timers) run()
  }

  reload(): string {
    return this.#reloading.reload()
  }

  async limit(): Promise<number> {
    const { body } = await this.service.post('/v1/peek', { limiter: 'api', key: 'any' })
    return body.limits[0].limit
  }

  /** Returns metrics and readiness. */
  async state() {
    const metrics = (await this.service.get('/metrics')).body as string
    const value = (name: string) => Number(new RegExp(`^${name} (.*)$`, 'm').exec(metrics)?.[1] ?? 0)
    const ready = await this.service.get('/readyz')
    return {
      ok: value('slidegate_config_reloads_total{result="ok"}'),
      errors: value('slidegate_config_reloads_total{result="error"}'),
      valid: value('slidegate_config_valid'),
      ready: ready.status,
      readyValid: ready.body.config.valid,
    }
  }

  said(text: RegExp): number {
    return this.lines.filter(({ msg }) => text.test(msg)).length
  }

  close(): void {
    this.#reloading.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close()
    await this.service[Symbol.asyncDispose]()
  }
}

const GOOD = { ready: 200, readyValid: true, valid: 1 }
const BAD = { ready: 200, readyValid: false, valid: 0 }

describe('a configuration file', () => {
  it('counts as valid from the start', async () => {
    await using watched = await Watched.start(configOf(10))
    expect(await watched.state()).toEqual({ ...GOOD, ok: 0, errors: 0 })
  })

  it('takes effect once it has been unchanged for a moment', async () => {
    await using watched = await Watched.start(configOf(10))
    watched.write(configOf(20))
    watched.look(1)
    expect(await watched.limit()).toBe(10)
    watched.look(1)
    expect(await watched.limit()).toBe(20)
    watched.look(5)
    expect(await watched.state()).toEqual({ ...GOOD, ok: 1, errors: 0 })
    expect(watched.said(/^the configuration was applied$/)).toBe(1)
  })

  it('takes effect in its final form after repeated writes', async () => {
    await using watched = await Watched.start(configOf(10))
    for (let limit = 11; limit <= 30; limit++) {
      watched.write(configOf(limit).padEnd(limit * 10))
      watched.look(1)
    }
    expect(await watched.limit()).toBe(10)
    watched.look(1)
    expect(await watched.limit()).toBe(30)
    expect(await watched.state()).toMatchObject({ ok: 1 })
  })

  it('causes no reload if it is rewritten with the same contents', async () => {
    await using watched = await Watched.start(configOf(10))
    for (let i = 1; i <= 3; i++) {
      watched.write(configOf(10))
      utimesSync(watched.file, 1000 * i, 1000 * i)
      watched.look()
    }
    watched.write(`${configOf(10)}\n\n`)
    watched.look()
    expect(await watched.state()).toEqual({ ...GOOD, ok: 0, errors: 0 })
    expect(watched.reload()).toBe('unchanged')
    expect(watched.said(/^the configuration is unchanged$/)).toBe(1)
  })

  it('takes effect if it changes between the start and the first check', async () => {
    const file = folder.write('slidegate.json', configOf(10))
    const loaded = loadConfig(file, { environment: {} })
    await using service = await testService(loaded.config)
    writeFileSync(file, configOf(20))
    const log = pino({ level: 'silent' })
    let look = () => {}
    const every = (_ms: number, run: () => void) => {
      look = run
      return () => {}
    }
    new Reloading({ load: () => loadConfig(file, { environment: {} }), loaded, running: service, log, every })
    look()
    look()
    expect(service.service.config.limiters.api).toEqual(limiter(20))
  })

  it('reloads immediately on demand', async () => {
    await using watched = await Watched.start(configOf(10))
    watched.write(configOf(20))
    expect(watched.reload()).toBe('ok')
    expect(await watched.limit()).toBe(20)
    watched.look(5)
    expect(await watched.state()).toMatchObject({ ok: 1 })
  })

  it('takes effect if it is replaced, as editors do', async () => {
    await using watched = await Watched.start(configOf(10))
    renameSync(folder.write('slidegate.json.tmp', configOf(20)), watched.file)
    watched.look()
    expect(await watched.limit()).toBe(20)
  })

  it('takes effect behind swapped links, as in Kubernetes', async () => {
    for (const limit of [10, 20]) {
      mkdirSync(join(folder.path, `..${limit}`))
      folder.write(`..${limit}/slidegate.json`, configOf(limit))
    }
    symlinkSync('..10', join(folder.path, '..data'))
    symlinkSync('..data/slidegate.json', join(folder.path, 'slidegate.json'))
    await using watched = await Watched.start('', join(folder.path, 'slidegate.json'))
    symlinkSync('..20', join(folder.path, '..data_tmp'))
    renameSync(join(folder.path, '..data_tmp'), join(folder.path, '..data'))
    rmSync(join(folder.path, '..10'), { recursive: true })
    watched.look()
    expect(await watched.limit()).toBe(20)
  })

  it.each([
    ['truncated contents', () => configOf(20).slice(0, 40)],
    ['empty contents', () => ''],
    ['bytes', () => Buffer.from([0xff, 0xfe, 0x00])],
    ['invalid limits', () => configOf(0)],
  ])('with %s changes nothing and logs an error', async (_, text) => {
    await using watched = await Watched.start(configOf(10))
    watched.write(text())
    watched.look()
    expect(await watched.limit()).toBe(10)
    expect(await watched.state()).toEqual({ ...BAD, ok: 0, errors: 1 })
    const { problems } = watched.lines.find(
      ({ msg }) => msg === 'the configuration is invalid: the previous one stays active',
    )!
    expect(problems).toEqual([expect.stringMatching(/slidegate\.json:1:\d+: /)])
    watched.write(configOf(20))
    watched.look()
    expect(await watched.limit()).toBe(20)
    expect(await watched.state()).toEqual({ ...GOOD, ok: 1, errors: 1 })
  })

  it('becomes valid again when a mistake is reverted', async () => {
    await using watched = await Watched.start(configOf(10))
    watched.write('{')
    watched.look()
    watched.write(configOf(10))
    watched.look()
    expect(await watched.state()).toEqual({ ...GOOD, ok: 1, errors: 1 })
  })

  it('changes nothing if it disappears or becomes a folder', async () => {
    await using watched = await Watched.start(configOf(10))
    rmSync(watched.file)
    watched.look()
    expect(await watched.state()).toEqual({ ...BAD, ok: 0, errors: 1 })
    mkdirSync(watched.file)
    watched.look()
    expect(await watched.state()).toEqual({ ...BAD, ok: 0, errors: 2 })
    rmSync(watched.file, { recursive: true })
    watched.write(configOf(20))
    watched.look()
    expect(await watched.limit()).toBe(20)
    expect(await watched.state()).toMatchObject(GOOD)
  })

  it('with a mistake is read again later, since missing files may appear', async () => {
    await using watched = await Watched.start(configOf(10))
    watched.write(configOf(20, { envoy: { files: ['late.yaml'] } }))
    watched.look(10)
    expect(await watched.state()).toMatchObject({ ...BAD, errors: 1 })
    watched.look(100)
    // The file is read several times, but the problem is logged once.
    expect(await watched.state()).toMatchObject({ ...BAD, errors: 1 })
    folder.write(
      'late.yaml',
      'domain: a\ndescriptors: [{ key: k, rate_limit: { unit: second, requests_per_unit: 1 } }]',
    )
    watched.look(25)
    expect(await watched.state()).toMatchObject(GOOD)
    expect(await watched.limit()).toBe(20)
  })

  it('reloads when files of Envoy or their folders change', async () => {
    mkdirSync(join(folder.path, 'domains'))
    const domain = (name: string, limit: number) =>
      folder.write(
        `domains/${name}.yaml`,
        `domain: ${name}\ndescriptors: [{ key: k, rate_limit: { unit: hour, requests_per_unit: ${limit} } }]`,
      )
    domain('a', 1)
    await using watched = await Watched.start(
      configOf(10, { envoy: { files: ['domains'] }, listen: { grpc: false } }),
    )
    domain('a', 2)
    watched.look()
    expect(await watched.state()).toMatchObject({ ok: 1 })
    domain('b', 1)
    watched.look(4)
    expect(await watched.state()).toMatchObject({ ok: 2 })
    folder.write('domains/b.yaml', 'domain: [')
    watched.look(4)
    expect(await watched.state()).toEqual({ ...BAD, ok: 2, errors: 1 })
  })

  it('logs changes that take effect at the next start', async () => {
    await using watched = await Watched.start(configOf(10))
    const caps = { bodyBytes: 2048 }
    watched.write(configOf(10, { listen: { http: '127.0.0.1:1' }, store: { memory: {} }, caps }))
    watched.look()
    expect(watched.lines.flatMap(({ parts }) => parts ?? [])).toEqual(['listen', 'store', 'caps'])
  })

  it('leaves one timer after a hundred reloads, and none after closing', async () => {
    const listeners = () => process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0)
    const before = listeners()
    await using watched = await Watched.start(configOf(10))
    watched.write(configOf(11))
    watched.look()
    for (let limit = 12; limit <= 111; limit++) {
      watched.write(limit % 10 === 0 ? '{' : configOf(limit))
      expect(watched.reload()).toBe(limit % 10 === 0 ? 'error' : 'ok')
    }
    expect(await watched.limit()).toBe(111)
    expect(await watched.state()).toEqual({ ...GOOD, ok: 91, errors: 10 })
    expect(watched.timers).toBe(1)
    expect(listeners()).toBeLessThanOrEqual(before)
    watched.close()
    expect(watched.timers).toBe(0)
  })
})

describe.each(['memory', 'Redis'])('usage in %s', (kind) => {
  const withStore = async (run: (store: object) => Promise<void>) => {
    if (kind === 'memory') return run({ memory: {} })
    await using redis = await withRedis()
    await run({ redis: { url: redis.url } })
  }
  const allowed = async ({ service }: Watched, times: number) => {
    let count = 0
    for (let i = 0; i < times; i++) {
      if ((await service.post('/v1/consume', { limiter: 'api', key: 'ann' })).body.allowed) count++
    }
    return count
  }

  it('survives raised and lowered limits, with mistakes in between', async () => {
    await withStore(async (store) => {
      await using watched = await Watched.start(configOf(10, { store }))
      expect(await allowed(watched, 7)).toBe(7)
      for (const [limit, more] of [
        [8, 1],
        [5, 0],
        [12, 4],
      ] as const) {
        watched.write('{ "limiters": {')
        expect(watched.reload()).toBe('error')
        watched.write(configOf(limit, { store }))
        expect(watched.reload()).toBe('ok')
        expect(await allowed(watched, 10)).toBe(more)
      }
    })
  })

  it('survives other limits and a temporarily removed limiter', async () => {
    await withStore(async (store) => {
      await using watched = await Watched.start(configOf(10, { store }))
      expect(await allowed(watched, 7)).toBe(7)
      const longer = { kind: 'slidingWindow', limit: 9, window: '2h', precision: '1s' }
      watched.write(JSON.stringify({ limiters: { api: { timeoutMs: 10_000, limits: [longer] } }, store }))
      expect(watched.reload()).toBe('ok')
      expect(await allowed(watched, 10)).toBe(2)
      watched.write(JSON.stringify({ limiters: {}, store }))
      expect(watched.reload()).toBe('ok')
      const gone = await watched.service.post('/v1/consume', { limiter: 'api', key: 'ann' })
      expect(gone.status).toBe(404)
      watched.write(configOf(10, { store }))
      expect(watched.reload()).toBe('ok')
      expect(await allowed(watched, 10)).toBe(1)
    })
  })
})
