// tier: integration
import { createServer } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, describe, expect, it, test } from 'vitest'
import { commonLine, generateEntries, logOf } from '../../replay/test/support/logs.ts'
import { freePort } from '../../slidegate/test/support/redis-server.ts'
import { slidegate, slidegateHere, temporaryFolder } from './support/cli.ts'

const folder = temporaryFolder()
afterAll(folder.remove)

const log = folder.write('access.log', logOf(generateEntries(10), commonLine))

/** Requires one line on standard error, no output and no stack. */
async function complaint(words: readonly string[]): Promise<{ code: number | null; said: string }> {
  const { code, stdout, stderr } = await slidegateHere(words)
  expect(stdout).toBe('')
  expect(stderr).toMatch(/^slidegate: [^\n]+\n$/)
  return { code, said: stderr }
}

describe('a usage error shows the correct form and exits with 2', () => {
  const LIMIT = ['--limit', '10/1m']
  it.each<[readonly string[], string]>([
    [['replai'], "unknown command 'replai'"],
    [['replay', ...LIMIT], "missing required argument 'file'"],
    [['replay', log, '--compare', 'fixed'], '--compare needs a --limit, such as --limit 100/1m'],
    [['replay', log, '--store', 'redis://127.0.0.1'], '--store needs a --limit'],
    [['replay', log, '--report', 'r.html'], '--report needs a --limit'],
    [
      ['replay', log, '--limit', '10'],
      `invalid --limit 10: the limit is "10"; it must be text such as '100/1m' or 'login=100/1m'`,
    ],
    [['replay', log, '--limit', '0/1m'], 'invalid --limit 0/1m: the limit is 0'],
    [['replay', log, '--limit', '-1/1m'], 'the limit is "-1/1m"'],
    [['replay', log, '--limit', '1.5/1m'], 'the limit is "1.5/1m"'],
    [['replay', log, '--limit', '9999999999999999/1m'], 'it must be an integer from 1'],
    [['replay', log, '--limit', '10/1y'], 'the window is "1y"'],
    [['replay', log, '--limit', '10/1ms'], 'it must be from 10ms to 366d'],
    [['replay', log, '--limit', 'a b=10/1m'], 'the name is "a b"'],
    [['replay', log, ...LIMIT, ...LIMIT], 'two limits are named "10-per-1m"'],
    [['replay', log, ...LIMIT, '--format', 'xml'], 'Allowed choices are auto, clf, json'],
    [
      ['replay', log, ...LIMIT, '--format', 'clf', '--key', 'tenant'],
      'invalid --key "tenant"; for access logs it must be one of ip',
    ],
    [['replay', log, ...LIMIT, '--compare', 'leaky'], 'Allowed choices are fixed'],
    [['replay', log, ...LIMIT, '--reorder', 'long'], 'invalid --reorder "long"; use a value such as 30s'],
    [['replay', log, ...LIMIT, '--top', 'all'], 'invalid --top "all"; it must be a whole number'],
    [
      ['replay', log, ...LIMIT, '--store', 'memcached://x'],
      'invalid --store "memcached://x"; use a value such as redis://127.0.0.1:6379',
    ],
    [['replay', log, log, ...LIMIT], 'too many arguments'],
    [['replay', log, ...LIMIT, '--nonsense\u001b[31m'], "unknown option '--nonsense\\u001b[31m'"],
    [['demo', 'now'], "argument 'demo'. Allowed choices are burst, race"],
    [['demo', 'race', '--store', 'x'], 'invalid --store "x"; use a value such as redis://127.0.0.1:6379'],
  ])('%j', async (words, message) => {
    const { code, said } = await complaint(words)
    expect(said).toContain(message)
    expect(code).toBe(2)
  })

  it('a missing command prints the help', async () => {
    expect(await slidegate([])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('Usage: slidegate'),
    })
  })
})

describe('a runtime error prints one line and exits with 1', () => {
  const gzip = gzipSync(logOf(generateEntries(1000), commonLine))
  it.each<[string, string, string]>([
    ['a missing file', `${folder.path}/missing.log`, 'no such file'],
    ['a directory', folder.path, 'directory'],
    [
      'a truncated gzip file',
      folder.write('short.gz', gzip.subarray(0, 2000)),
      'damaged gzip data, unexpected end of file',
    ],
    [
      'a gzip file with a wrong byte',
      folder.write('wrong.gz', Buffer.from(gzip).fill(0xff, 2000, 2010)),
      'damaged gzip data, ',
    ],
    [
      'a file with only a gzip header',
      folder.write('no.gz', Buffer.from([0x1f, 0x8b, 1, 2, 3])),
      'damaged gzip data, ',
    ],
  ])('%s', async (_, file, message) => {
    const { code, said } = await complaint(['replay', file, '--limit', '10/1m'])
    expect(said).toContain(`can't read ${file}: `)
    expect(said).toContain(message)
    expect(code).toBe(1)
  })

  it('a Redis address without a server', async () => {
    const url = `redis://user:secret@127.0.0.1:${await freePort()}`
    const { code, said } = await complaint(['replay', log, '--limit', '10/1m', '--store', url])
    expect(said).toMatch(/^slidegate: can't use Redis at redis:\/\/127\.0\.0\.1:\d+: connect ECONNREFUSED/)
    expect(code).toBe(1)
  })

  it('a Redis address with another server, or with one that never responds', async () => {
    for (const greeting of ['HTTP/1.1 400 Bad Request\r\n\r\n', undefined]) {
      const server = createServer((socket) => {
        socket.on('error', () => {})
        socket.on('data', () => greeting !== undefined && socket.write(greeting))
      })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const { port } = server.address() as { port: number }
      const { code, said } = await complaint([
        'replay',
        log,
        '--limit',
        '10/1m',
        '--store',
        `redis://127.0.0.1:${port}`,
      ])
      server.close()
      expect(said).toContain(`can't use Redis at redis://127.0.0.1:${port}: `)
      expect(code).toBe(1)
    }
  })
})

test('--help and --version exit with 0', async () => {
  expect(await slidegate(['--version'])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
  })
  const { code, stdout } = await slidegate(['replay', '--help'])
  expect(code).toBe(0)
  expect(stdout).toContain('--time-field')
})
