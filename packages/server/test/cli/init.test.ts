// tier: integration
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { adminService } from '../admin/support.ts'
import { slidegateHere, temporaryFolder } from '../support/cli.ts'

const folder = temporaryFolder()
afterAll(folder.remove)

const BIN = fileURLToPath(new URL('../../bin/slidegate.js', import.meta.url))

function init(file: string, ...words: string[]) {
  return slidegateHere(['init', join(folder.path, file), ...words])
}

describe('slidegate init', () => {
  const redis = 'redis://user:p%40ss@127.0.0.1:6379/1'
  it.each(
    ['api', 'login', 'llm'].flatMap((kind) =>
      ['memory', redis].flatMap((store) =>
        [undefined, '1/10ms', '7/90s', '1000000/366d'].map((limit) => ({ kind, store, limit })),
      ),
    ),
  )('writes a valid configuration: $kind, $store, $limit', async ({ kind, store, limit }) => {
    const name = `${kind}-${store === 'memory'}-${limit?.replace('/', '-')}.yaml`
    const file = join(folder.path, name)
    const outcome = await init(name, '--kind', kind, '--store', store, ...(limit ? ['--limit', limit] : []))
    expect(outcome).toMatchObject({ code: 0, stderr: '' })
    expect(JSON.parse(outcome.stdout)).toMatchObject({
      file,
      kind,
      next: [expect.any(String), expect.any(String)],
    })
    expect(outcome.stdout).not.toContain('p%40ss')
    const validated = await slidegateHere(['validate', file])
    expect({ code: validated.code, ...JSON.parse(validated.stdout) }).toMatchObject({
      code: 0,
      limiters: [kind],
    })
    const written = parse(readFileSync(file, 'utf8'))
    expect(written.store).toEqual(store === 'memory' ? { memory: {} } : { redis: { url: store } })
    if (limit !== undefined) {
      const [units, window] = limit.split('/')
      const { limits, dimensions } = written.limiters[kind]
      expect((limits ?? dimensions.user)[0]).toEqual({ kind: 'slidingWindow', limit: Number(units), window })
    }
    expect(statSync(file).mode & 0o077).toBe(store === 'memory' ? 0o044 : 0)
  })

  it('prints commands that work', async () => {
    for (const kind of ['api', 'login', 'llm']) {
      const name = `works-${kind}.yaml`
      const { next } = JSON.parse((await init(name, '--kind', kind)).stdout)
      const { listen: _, ...config } = parse(readFileSync(join(folder.path, name), 'utf8'))
      await using service = await adminService(config)
      const words = next[1].split(' ').slice(1)
      const { code, stderr } = await slidegateHere(words, { SLIDEGATE_URL: service.url })
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(next[0]).toBe(`slidegate serve --config ${join(folder.path, name)}`)
    }
  })

  it('uses defaults without a terminal, and overwrites a file only with --force', async () => {
    expect(await init('twice.yaml', '--human')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^wrote .*twice\.yaml: limiter api, 100\/1m, in memory\nnext.*\n {2}slidegate serve .*\n {2}slidegate consume api user:42\n$/,
      ),
    })
    const before = readFileSync(join(folder.path, 'twice.yaml'), 'utf8')
    const again = await init('twice.yaml', '--limit', '5/1s')
    expect(again).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('already exists') })
    expect(readFileSync(join(folder.path, 'twice.yaml'), 'utf8')).toBe(before)
    expect((await init('twice.yaml', '--limit', '5/1s', '--force')).code).toBe(0)
    expect(readFileSync(join(folder.path, 'twice.yaml'), 'utf8')).toContain('limit: 5, window: 1s')
  })

  it.each<[readonly string[], string, number]>([
    [['--kind', 'web'], 'Allowed choices are api, login, llm', 2],
    [['--store', 'http://u:secret@x'], 'invalid --store "http://x"; it must be memory', 2],
    [['--store', 'redis://x$y'], 'invalid --store', 2],
    [['--limit', '100'], 'the limit is "100"; it must be text such as', 2],
    [['--limit', 'a=100/1m'], 'invalid --limit "a=100/1m"; use a value such as 100/1m', 2],
    [['--limit', '0/1m'], 'the limit is 0', 2],
    [['--limit', '5/1ms'], '10ms to 366d', 2],
    [['--kind', 'login', '--limit', '1099511627776/1m'], 'limit', 2],
  ])('rejects %j and writes nothing', async (words, message, code) => {
    const outcome = await init('bad.yaml', ...words)
    expect(outcome).toMatchObject({ code, stdout: '', stderr: expect.stringContaining(message) })
    expect(outcome.stderr).not.toContain('secret')
    expect(existsSync(join(folder.path, 'bad.yaml'))).toBe(false)
  })

  it('fails if the folder is missing', async () => {
    expect(await init('none/a.yaml')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("can't write"),
    })
  })
})

describe('on a terminal, slidegate init', () => {
  /** Sends each answer after a prompt. */
  async function onTerminal(name: string, answers: readonly string[], words = '') {
    const command = `${process.execPath} ${BIN} init ${join(folder.path, name)} ${words}`
    const child = spawn('script', ['-qec', command, '/dev/null'], { stdio: ['pipe', 'pipe', 'inherit'] })
    let seen = ''
    let answered = 0
    child.stdin.on('error', () => {})
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      seen += text
      const prompts = seen.split(/\]: /).length - 1
      while (answered < Math.min(prompts, answers.length)) child.stdin.write(answers[answered++]!)
    })
    const [code] = await once(child, 'close')
    return { code, seen }
  }

  it('prompts three times, and again after an invalid answer', async () => {
    const { code, seen } = await onTerminal('asked.yaml', ['web\r', 'login\r', '\r', 'many\r', '3/1m\r'])
    expect(seen).toContain('invalid --kind "web"; it must be one of api, login, llm')
    expect(seen).toContain('the limit is "many"')
    expect(seen).toContain('slidegate consume login user=ann')
    expect(code).toBe(0)
    const { limiters, store } = parse(readFileSync(join(folder.path, 'asked.yaml'), 'utf8'))
    expect(limiters.login.dimensions.user[0]).toMatchObject({ limit: 3, window: '1m' })
    expect(store).toEqual({ memory: {} })
  })

  it('prompts only for missing options', async () => {
    const { code, seen } = await onTerminal('some.yaml', ['\r'], '--kind llm --store memory')
    expect(code).toBe(0)
    expect(seen).not.toContain('What do you want to protect?')
    expect(readFileSync(join(folder.path, 'some.yaml'), 'utf8')).toContain('limit: 40000, window: 1m')
  })

  it.each([
    ['Ctrl-C', '\u0003'],
    ['Ctrl-D', '\u0004'],
  ])('writes nothing after %s', async (_, key) => {
    const { code, seen } = await onTerminal('stopped.yaml', ['api\r', key])
    expect(code).toBe(1)
    expect(seen).toContain('stopped; nothing was written')
    expect(existsSync(join(folder.path, 'stopped.yaml'))).toBe(false)
  })
})
