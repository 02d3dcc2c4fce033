import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'

it.each(['express', 'fastify'])(
  'the example %s serves until its limit, then answers with 429',
  async (name) => {
    const script = fileURLToPath(new URL(`../${name}/server.js`, import.meta.url))
    const child = spawn(process.execPath, [script], {
      env: { ...process.env, PORT: '0' },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const ended = once(child, 'exit')
    onTestFinished(async () => {
      child.kill()
      await ended
    })
    const [url] = await Promise.race([
      once(createInterface(child.stdout), 'line'),
      ended.then(([code]) => Promise.reject(new Error(`the example ended with code ${code}`))),
    ])

    const statuses: number[] = []
    let response: Response
    do {
      response = await fetch(url)
      statuses.push(response.status)
    } while (response.status === 200 && statuses.length < 20)

    expect(statuses).toEqual([200, 200, 200, 200, 200, 429])
    expect(Number(response.headers.get('Retry-After'))).toBeGreaterThan(0)
    expect(response.headers.get('RateLimit')).toMatch(/^"5-per-10s";r=0;t=\d+$/)
    expect(await response.json()).toMatchObject({ status: 429, 'violated-policies': ['5-per-10s'] })
  },
)
