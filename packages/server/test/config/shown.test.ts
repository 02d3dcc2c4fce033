import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ConfigurationState } from '../../src/admin/api-types.ts'
import { ServiceClient } from '../../src/client/service-client.ts'
import { loadConfig, shownConfig } from '../../src/config/load.ts'
import { startService } from '../../src/service/running.ts'
import { cpuMsOf } from '../support/cpu-time.ts'
import { adminTokenOf } from '../support/service.ts'

const SECRET = 'do-not-tell-anybody-4711'

const WITH_SECRETS = `
# ${SECRET} in a comment
auth:
  tokens:
    - { name: plain, role: admin, token: ${SECRET} }
    - { name: hashed, role: read, sha256: ${'ab'.repeat(32)} }
    - { name: variable, role: read, token: '\${READ_TOKEN}' }
    - { name: usual, role: read, token: '\${OTHER_TOKEN:-${SECRET}}' }
store:
  redis: { url: ['redis://user:${SECRET}@localhost:6379', 'redis://user:${SECRET}@localhost:6380'] }
limiters:
  api:
    hashKeys: ${SECRET}
    limits: [{ kind: slidingWindow, limit: 10, window: 1s }]
`

describe('the shown configuration', () => {
  it('hides secrets and shows the names of variables', () => {
    const shown = shownConfig('x.yaml', WITH_SECRETS)
    expect(shown).not.toContain(SECRET)
    expect(shown).not.toContain('abab')
    expect(shown.match(/\*\*\*/g)).toHaveLength(6)
    expect(shown).toContain('token: $' + '{READ_TOKEN}')
    expect(shown).toContain('limit: 10')
  })

  it('looks the same for equal configurations', () => {
    const one = shownConfig('x', 'limiters:\n  b: { limits: [] }\n  a: { shadow: true, limits: [] }\n')
    const other = shownConfig('x', '{"limiters":{"a":{"limits":[],"shadow":true},"b":{"limits":[]}}}')
    expect(one).toBe(other)
  })
})

const api = (limit: number) =>
  `limiters: { api: { limits: [{ kind: slidingWindow, limit: ${limit}, window: 1s }] } }\n`

async function setUp(text: string, environment: NodeJS.ProcessEnv = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'slidegate-shown-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'slidegate.yaml')
  writeFileSync(file, text)
  const loaded = loadConfig(file, { environment, listen: { http: '127.0.0.1:0' } })
  const running = await startService({ loaded, log: pino({ level: 'silent' }), environment })
  onTestFinished(() => running.stop())
  const client = new ServiceClient({ url: new URL(running.httpUrl), token: adminTokenOf(running) })
  return {
    running,
    write: (changed: string) => writeFileSync(file, changed),
    load: () => loadConfig(file, { environment }),
    shown: async () => (await client.answer('GET', '/v1/admin/configuration')).body as ConfigurationState,
    check: async (checked: string) =>
      await client.answer('POST', '/v1/admin/configuration/check', { text: checked }),
  }
}

/** Creates limiters with the same shape but nothing else in common. */
const many = (name: string, count: number) =>
  Array.from({ length: count }, (_, i) => {
    const limit = (name === 'next' ? 1_000_000 : 0) + i + 1
    return `  ${name}-${i}: { limits: [{ name: ${name}${i}, kind: slidingWindow, limit: ${limit}, window: ${limit}s }] }\n`
  }).reduce((text, line) => text + line, 'limiters:\n')

describe('the configuration of a service', () => {
  it('shows its difference to the file until a reload', async () => {
    const service = await setUp(api(10))
    expect(await service.shown()).toMatchObject({ file: 'slidegate.yaml', problems: [], diff: [] })
    service.write(api(20))
    const { inForce, diff } = await service.shown()
    expect(inForce).toContain('limit: 10')
    const changed = diff.filter(({ kind }) => kind !== 'same').map(({ kind, text }) => [kind, text.trim()])
    expect(changed).toEqual([
      ['removed', 'limit: 10'],
      ['added', 'limit: 20'],
    ])
    service.running.reload(service.load())
    expect(await service.shown()).toMatchObject({ diff: [], inForce: expect.stringContaining('limit: 20') })
    service.write('limiters: { api: { limits: [{ kind: slidingWindow, limit: 0, window: 1s }] } }')
    const wrong = await service.shown()
    expect(wrong.inForce).toContain('limit: 20')
    expect(wrong.diff).toEqual([])
    expect(wrong.problems).toMatchObject([{ line: 1, message: expect.stringContaining('limit') }])
  })

  it('reports problems or changes of a draft without applying it', async () => {
    const service = await setUp(api(10))
    expect((await service.check(api(10))).body).toEqual({ problems: [], diff: [] })
    const { body } = await service.check(`${api(10)}caps: { inFlight: 5 }\n`)
    expect(body).toMatchObject({ problems: [] })
    const { diff } = body as ConfigurationState
    expect(diff.filter(({ kind }) => kind === 'added').map(({ text }) => text)).toEqual([
      'caps:',
      '  inFlight: 5',
    ])
    expect((await service.check('limiters: [')).body).toMatchObject({
      problems: [{ line: 1, message: expect.stringContaining('YAML') }],
    })
    expect((await service.check('')).body).toMatchObject({ diff: [] })
    expect(await service.shown()).toMatchObject({ diff: [], inForce: expect.stringContaining('limit: 10') })
  })

  it('never reads files that a draft names, or reveals whether they exist', async () => {
    const service = await setUp(api(10))
    for (const more of ['capture: { file: /none/x.ndjson }', 'logging: { decisionFile: /none/x.ndjson }']) {
      expect((await service.check(`${api(10)}${more}\n`)).body).toMatchObject({ problems: [] })
    }
  })

  it('differs completely from an unrelated draft, and reports that quickly', async () => {
    const service = await setUp(many('former', 2000))
    let diff: ConfigurationState['diff'] = []
    const cpuMs = await cpuMsOf(async () => {
      // Uses `inject`, because clients would time out on a slow machine.
      const answer = await service.running.app.inject({
        method: 'POST',
        url: '/v1/admin/configuration/check',
        headers: { authorization: `Bearer ${adminTokenOf(service.running)}` },
        payload: { text: many('next', 2000) },
      })
      diff = answer.json<ConfigurationState>().diff
    })
    // A line-by-line comparison takes a minute.
    expect(cpuMs).toBeLessThan(15_000)
    const kinds = diff.map(({ kind }) => kind)
    expect(kinds).toEqual([...kinds].sort((a, b) => (a > b ? -1 : a < b ? 1 : 0)))
    expect(new Set(kinds)).toEqual(new Set(['removed', 'added']))
  })

  it('never reveals values of variables in a check', async () => {
    const service = await setUp(api(10), { ADMIN_TOKEN: SECRET, LIMIT: SECRET })
    const variable = (name: string) => `\${${name}}`
    for (const text of [
      `logging: { level: '${variable('ADMIN_TOKEN')}' }`,
      `limiters: { '${variable('ADMIN_TOKEN')}': { limits: [] } }`,
      `limiters: { api: { limits: [{ kind: '${variable('LIMIT')}', limit: '${variable('LIMIT')}', window: '${variable('LIMIT')}' }] } }`,
      `auth: { hosts: ['${variable('ADMIN_TOKEN')}'], origins: ['x-${variable('ADMIN_TOKEN')}-y'] }\n${api(3)}`,
      `envoy: { files: ['${variable('ADMIN_TOKEN')}'] }`,
      `store: { redis: { url: '${variable('ADMIN_TOKEN')}' } }`,
      `listen: { http: '${variable('ADMIN_TOKEN')}' }`,
    ]) {
      const { status, body } = await service.check(text)
      expect(status).toBe(200)
      expect(JSON.stringify(body)).not.toContain(SECRET)
    }
    const digits = '1234567890'
    const numbered = await setUp(api(10), { PIN: `00${digits}.50` })
    const { body } = await numbered.check(`${api(3)}caps: { inFlight: '${variable('PIN')}' }`)
    expect(body).toMatchObject({ problems: [{ message: expect.stringContaining('inFlight') }] })
    expect(JSON.stringify(body)).not.toContain(digits)
  })
})
