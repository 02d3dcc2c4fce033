import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { codeBlocks, ROOT } from '../../../slidegate/test/docs/markdown.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { OpenApi } from '../support/described.ts'
import { type TestService, testService } from '../support/service.ts'

const page = readFileSync(join(ROOT, 'docs/api.md'), 'utf8')
const EXAMPLE = join(ROOT, 'packages/server/examples/slidegate.yaml')

/** Starts a service with the example configuration on a free port. */
async function example(): Promise<TestService> {
  const { config } = loadConfig(EXAMPLE, { environment: {} })
  const { listen, limiters, ...others } = config
  const { llm } = limiters!
  // Slows the refill, so that a machine stall doesn't fill the bucket.
  const limits = llm!.limits!.map((limit) =>
    limit.kind === 'tokenBucket' ? { ...limit, interval: '1h' } : limit,
  )
  return testService({
    ...others,
    limiters: { ...limiters, llm: { ...llm, limits } },
    store: { memory: {} },
  })
}

describe('docs/api.md', () => {
  it('contains only commands that work', async () => {
    await using service = await example()
    const commands = codeBlocks(page).flatMap(({ language, code }) =>
      language === 'sh' && code.startsWith('curl') ? [code] : [],
    )
    expect(commands.length).toBeGreaterThan(8)
    let token = ''
    const answers = new Map<string, { readonly returned?: number }>()
    for (const command of commands) {
      const [, path, sent] =
        /localhost:8080(\S+) -H 'content-type: application\/json' \\\n {2}-d '(.*)'$/s.exec(command)!
      // The shell would substitute the token.
      const { status, body } = await service.post(path!, JSON.parse(sent!.replace(`'"$TOKEN"'`, token)))
      expect([command, status]).toEqual([command, 200])
      token = body.refundToken ?? body.token ?? token
      answers.set(path!, body)
    }
    expect(answers.get('/v1/refund')).toEqual({ returned: 2 })
    const settled = answers.get('/v1/settle')
    expect(settled).toEqual({ returned: expect.any(Number), added: 0 })
    // The bucket is refilled as time passes.
    expect(settled!.returned).toBeGreaterThan(0)
    expect(settled!.returned).toBeLessThanOrEqual(388)
  })

  it('shows responses as the service sends them', async () => {
    await using service = await example()
    const shown = codeBlocks(page).flatMap(({ language, code }) =>
      language === 'json' ? [JSON.parse(code)] : [],
    )
    const [decision, problem] = shown
    const { body } = await service.post('/v1/consume', { limiter: 'api', key: 'user:42' })
    expect(Object.keys(decision)).toEqual(Object.keys(body))
    expect(decision).toEqual({
      ...body,
      limits: [body.limits[0]],
      resetAfterMs: 3_600_000,
      atMs: decision.atMs,
    })
    expect((await service.post('/v1/consume', { limiter: 'api', key: 'user:42', cost: '1' })).body).toEqual(
      problem,
    )
  })

  it('lists all routes, and only those', async () => {
    await using service = await example()
    const paths = Object.keys(((await service.get('/openapi.json')).body as OpenApi).paths)
    const listed = Array.from(page.matchAll(/`(?:GET |POST )?(\/[\w./*-]*)`/g), ([, path]) => path!)
    for (const path of paths) {
      if (path.startsWith('/v1/admin/') || path.startsWith('/v1/store')) continue
      expect(listed).toContain(path)
    }
    for (const path of listed) if (!path.endsWith('*')) expect(paths).toContain(path)
  })

  it('lists every error code that callers may get', async () => {
    const codes = new Set(Array.from(page.matchAll(/`([a-z]+(?:_[a-z]+)*)`/g), ([, code]) => code!))
    const sources = ['http/problems.ts', 'http/entrance.ts', 'http/requests.ts', 'http/reservations.ts']
    const more = ['http/consume.ts', 'http/wait.ts', 'service/gatekeeper.ts', 'service/service.ts']
    for (const source of [...sources, ...more]) {
      const text = readFileSync(join(ROOT, 'packages/server/src', source), 'utf8')
      const thrown = text.matchAll(/(?:ServiceError|bodyOf)\(\s*\d{3},\s*'([a-z_]+)'/g)
      for (const [, code] of thrown) expect(codes, source).toContain(code)
      for (const [, code] of text.matchAll(/^ {2}FST_\w+: \['([a-z_]+)'/gm)) expect(codes).toContain(code)
    }
  })
})
