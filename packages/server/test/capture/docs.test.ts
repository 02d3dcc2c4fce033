// tier: system
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { parse } from 'yaml'
import { codeBlocks, ROOT } from '../../../slidegate/test/docs/markdown.ts'
import { adminService } from '../admin/support.ts'
import { slidegate, temporaryFolder } from '../support/cli.ts'

const folder = temporaryFolder()
afterAll(folder.remove)

const page = readFileSync(join(ROOT, 'docs/capture.md'), 'utf8')
const blocks = (language: string) =>
  codeBlocks(page).flatMap((block) => (block.language === language ? [block.code] : []))

it('docs/capture.md shows actual lines', async () => {
  const [capturing, logging] = blocks('yaml').map((code) => parse(code))
  const [captured, decision] = blocks('json').map((code) => JSON.parse(code))
  const service = await adminService({
    limiters: capturing.limiters,
    capture: { file: join(folder.path, capturing.capture.file), sampleRatio: 1 },
    logging: logging.logging,
  })
  await using _ = service
  for (let i = 0; i < 4; i++) await service.ask('POST', '/v1/consume', { limiter: 'api', key: 'ann' })
  const headers = { authorization: `Bearer ${service.token}` }
  const text = await (await fetch(`${service.url}/v1/admin/capture`, { headers })).text()
  const denied = JSON.parse(text.trimEnd().split('\n').at(-1)!)
  expect(captured).toEqual({ ...denied, time: captured.time, key: captured.key })
  expect(captured.key).toHaveLength(denied.key.length)
  const logged = service.logged.filter(({ msg }) => msg === 'decision')
  expect(logged).toHaveLength(1)
  const { time, key, retryAfterMs } = decision.decision
  expect(decision).toEqual({
    ...logged[0],
    ...{ time: decision.time, pid: decision.pid, hostname: decision.hostname },
    decision: { ...(logged[0]!.decision as object), time, key, retryAfterMs },
  })
})

it('docs/capture.md has working commands', async () => {
  const capture = { file: join(folder.path, 'commands.jsonl') }
  const limiters = parse(blocks('yaml')[0]!).limiters
  await using service = await adminService({ limiters, capture })
  for (let i = 0; i < 9; i++) {
    await service.ask('POST', '/v1/consume', { limiter: 'api', key: `user:${i % 2}` })
    const key = { user: `user:${i}`, address: '192.0.2.7' }
    await service.ask('POST', '/v1/consume', { limiter: 'login', key })
  }
  const [capturing, replaying] = blocks('sh')[0]!.trim().split('\n') as [string, string]
  const words = (command: string) => command.split(' ').slice(1)
  const [ask, file] = capturing.split(' > ') as [string, string]
  const sample = await slidegate(words(ask), '', {
    SLIDEGATE_URL: service.url,
    SLIDEGATE_TOKEN: service.token,
  })
  const into = folder.write(file, sample.stdout)
  const report = join(folder.path, 'report.html')
  const replay = words(replaying).map((word) =>
    word === file ? into : word === 'report.html' ? report : word,
  )
  expect(await slidegate(replay)).toMatchObject({ code: 0, stderr: '' })
  expect(readFileSync(report, 'utf8')).toContain('sample.jsonl')
  const byUser = [capture.file, '--limiter', 'login', '--key', 'key.user', '--limit', '1/1m', '--json']
  expect(JSON.parse((await slidegate(['replay', ...byUser])).stdout)).toMatchObject({
    requests: 9,
    denied: 0,
  })
})
