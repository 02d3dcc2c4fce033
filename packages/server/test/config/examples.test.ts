import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { temporaryFolder } from '../support/cli.ts'
import { testService } from '../support/service.ts'
import { problemsOf } from './support.ts'

const exampleFile = (name: string) => fileURLToPath(new URL(`../../examples/${name}`, import.meta.url))
const configIn = (name: string) => {
  const { listen: _, ...config } = loadConfig(exampleFile(name), { environment: {} }).config
  return config
}

describe('the example configuration', () => {
  it('names its schema for editors', () => {
    const [first] = readFileSync(exampleFile('slidegate.yaml'), 'utf8').split('\n')
    expect(first).toBe('# yaml-language-server: $schema=../schema/config.schema.json')
  })

  it('starts and applies plans, overrides and shadow limits', async () => {
    await using service = await testService(configIn('slidegate.yaml'))
    const consume = async (key: unknown, limiter = 'api') =>
      (await service.post('/v1/consume', { limiter, key })).body
    const usual = await consume('user:42')
    expect(usual).toMatchObject({ allowed: true, remaining: 9 })
    expect(usual.limits.map(({ name, shadow }: { name: string; shadow: boolean }) => [name, shadow])).toEqual(
      [
        ['10-per-1s', false],
        ['hourly', false],
        ['stricter', true],
      ],
    )
    expect(await consume('partner:one')).toMatchObject({ allowed: true, remaining: 99 })
    expect(await consume('user:load-test')).toMatchObject({ allowed: true, remaining: 999 })
  })

  it('limits logins by user and by address', async () => {
    await using service = await testService(configIn('slidegate.yaml'))
    for (let i = 0; i < 5; i++) {
      const key = { user: 'ann', address: `203.0.113.${i}` }
      expect((await service.post('/v1/consume', { limiter: 'login', key })).status).toBe(200)
    }
    const key = { user: 'ann', address: '203.0.113.99' }
    const denied = await service.post('/v1/consume', { limiter: 'login', key })
    expect(denied).toMatchObject({ status: 429, body: { deniedBy: ['user.5-per-15m'] } })
  })

  it('reserves tokens and settles the actual cost', async () => {
    await using service = await testService(configIn('slidegate.yaml'))
    const reserved = await service.post('/v1/reserve', { limiter: 'llm', key: 'team', estimate: 30_000 })
    expect(reserved.status).toBe(200)
    const { token } = reserved.body
    expect((await service.post('/v1/settle', { limiter: 'llm', token, actual: 100 })).status).toBe(200)
    const again = await service.post('/v1/consume', { limiter: 'llm', key: 'team', cost: 39_000 })
    expect(again.status).toBe(200)
  })

  it('answers gateways', async () => {
    await using service = await testService(configIn('slidegate.yaml'))
    const asked = (path: string, method = 'GET', headers = {}) =>
      service.get('/v1/forward-auth', {
        'x-forwarded-method': method,
        'x-forwarded-host': 'example.com',
        'x-forwarded-uri': path,
        'x-forwarded-for': '203.0.113.7',
        ...headers,
      })
    expect((await asked('/healthz')).headers.get('x-slidegate-limiter')).toBeNull()
    const login = await asked('/login', 'POST', { 'x-user': 'ann' })
    expect(login.headers.get('x-slidegate-limiter')).toBe('login')
    expect((await asked('/')).headers.get('x-slidegate-limiter')).toBe('api')
  })
})

it('the smallest example starts and decides', async () => {
  await using service = await testService(configIn('slidegate.json'))
  const decided = await service.post('/v1/consume', { limiter: 'api', key: 'ann' })
  expect(decided).toMatchObject({ status: 200, body: { remaining: 99 } })
})

describe('the documentation', () => {
  const page = readFileSync(new URL('../../../../docs/configuration.md', import.meta.url), 'utf8')
  const blocks = Array.from(page.matchAll(/```yaml\n(.*?)```/gs), ([, text]) => text!)

  it.each(blocks.map((text, i) => [i + 1, text] as const))(
    'shows a valid configuration (number %i)',
    (_, text) => {
      const folder = temporaryFolder()
      try {
        const file = folder.write('slidegate.yaml', text)
        expect(problemsOf(file, { environment: { SHOP_TOKEN: '0123456789abcdef' } })).toEqual([])
      } finally {
        folder.remove()
      }
    },
  )
})
