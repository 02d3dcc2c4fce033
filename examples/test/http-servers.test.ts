import { expect, it } from 'vitest'
import { served } from './support/example.ts'

it.each(['express', 'fastify'])(
  'the example %s serves until its limit, then answers with 429',
  async (name) => {
    const url = await served(name)

    // All at once, so that they fit in a window on a slow machine.
    const responses = await Promise.all(Array.from({ length: 6 }, () => fetch(url)))
    expect(responses.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 200, 429])
    const response = responses.find(({ status }) => status === 429)!
    expect(Number(response.headers.get('Retry-After'))).toBeGreaterThan(0)
    expect(response.headers.get('RateLimit')).toMatch(/^"5-per-10s";r=0;t=\d+$/)
    expect(await response.json()).toMatchObject({ status: 429, 'violated-policies': ['5-per-10s'] })
  },
)

it.each(['flash-sale', 'one-time-passwords', 'tenants', 'llm-gateway', 'graphql'])(
  'the example %s stays open with --serve',
  async (name) => {
    const { status } = await fetch(await served(name, '--serve'))
    expect(status).toBe(404)
  },
)
