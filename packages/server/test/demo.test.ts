// tier: system
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { barChart } from '../../replay/src/demo/run-demo.ts'
import { ROOT } from '../../slidegate/test/docs/markdown.ts'
import { allowAll } from '../../slidegate/test/support/access.ts'
import { freePort, startRedis } from '../../slidegate/test/support/redis-server.ts'
import { slidegate } from './support/cli.ts'

test('the demo measures 200% for the fixed and 100% for the sliding window, then exits', async () => {
  let { code, stdout, stderr } = await slidegate(['demo'])
  // On a busy machine, the demo exits without a result.
  for (let i = 0; i < 5 && stderr.includes('this machine was too slow'); i++) {
    ;({ code, stdout, stderr } = await slidegate(['demo']))
  }
  expect(stderr).toBe('')
  expect(code).toBe(0)
  expect(stdout).toMatch(/^fixed window +\S+ 200 of 100 = 200%$/m)
  expect(stdout).toMatch(/^sliding window +\S+ 100 of 100 = 100%$/m)
  // There is no terminal, so there are no colors.
  expect(stdout).not.toContain('\u001b')
})

test('the chart has colors only on request', () => {
  const bars = [
    { label: 'a', value: 2, color: 'red' },
    { label: 'b', value: 1, color: 'green' },
  ] as const
  expect(barChart(bars, 2, true)).toContain('\u001b')
  expect(barChart(bars, 2, false)).not.toContain('\u001b')
  expect(barChart(bars, 2, false)).toMatch(/2 of 2 = 100%/)
})

test('callers that ask at the same time get past separate commands, but not past a lock or the script', async () => {
  const server = await startRedis()
  await allowAll(server.port)
  const redis = new Redis(server.url)
  try {
    const { code, stdout, stderr } = await slidegate(['demo', 'race', '--store', server.url])
    expect(stderr).toBe('')
    expect(code).toBe(0)
    const [list, set, lock, script] = Array.from(
      stdout.matchAll(/ (\d+) +(\d+\.\d) +\d+ ms$/gm),
      ([, admitted, trips]) => ({ admitted: Number(admitted), trips: Number(trips) }),
    )
    expect(list!.admitted).toBeGreaterThan(10)
    expect(set!.admitted).toBeGreaterThan(10)
    expect(lock!.admitted).toBe(10)
    expect(lock!.trips).toBeGreaterThan(4)
    expect(script).toEqual({ admitted: 10, trips: 1 })
    expect(await redis.keys('*')).toEqual([])
    const page = readFileSync(join(ROOT, 'docs/ideas/race.md'), 'utf8')
    const [, documented = ''] = /^```text\n(.*?)^```/ms.exec(page) ?? []
    const withoutFigures = (text: string) =>
      text.replaceAll(/ +\d+ +\d+\.\d +\d+ ms/g, ' …').replaceAll(/ +/g, ' ')
    expect(withoutFigures(stdout)).toContain(withoutFigures(documented))
  } finally {
    await redis.quit()
    await server.stop()
  }
})

test('a Redis that cannot be reached ends the race with its address', async () => {
  const store = `redis://127.0.0.1:${await freePort()}`
  const { code, stderr } = await slidegate(['demo', 'race', '--store', store])
  expect(stderr).toMatch(`can't use Redis at ${store}`)
  expect(code).toBe(1)
})
