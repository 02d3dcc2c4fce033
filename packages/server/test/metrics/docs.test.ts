// tier: system
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { codeBlocks, ROOT } from '../../../slidegate/test/docs/markdown.ts'
import { domainsIn } from '../envoy/support/envoy-service.ts'
import { temporaryFolder } from '../support/cli.ts'
import { testService } from '../support/service.ts'
import { Scraped } from './support.ts'

const page = readFileSync(join(ROOT, 'docs/metrics.md'), 'utf8')
const service = page.slice(page.indexOf('\n## The service\n'))

async function scraped(): Promise<Scraped> {
  const rules = 'domain: gate\ndescriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 1 } }]'
  const config = { limiters: {}, envoy: { files: ['.'] }, listen: { grpc: '127.0.0.1:0' } }
  await using running = await testService(config, undefined, domainsIn({ 'rules.yaml': rules }))
  return new Scraped((await running.get('/metrics')).body)
}

describe('docs/metrics.md', () => {
  it('lists exactly the exposed metrics', async () => {
    const told = [...service.matchAll(/^\| `(slidegate_\w+)` \| (\w+) \| ([a-z, ]*) ?\| /gm)]
    const { text } = await scraped()
    const types = [...text.matchAll(/^# TYPE (slidegate_\w+) (\w+)$/gm)]
    expect(told.map(([, name, type]) => [name, type]).sort()).toEqual(
      types.map(([, name, type]) => [name, type]).sort(),
    )
    const own = [...service.matchAll(/`((?:process|nodejs)_\w+)`/g)].map(([, name]) => name)
    expect(own.length).toBeGreaterThan(3)
    for (const name of own) expect(text).toContain(`# TYPE ${name} `)
  })

  it('shows valid queries of existing metrics', async () => {
    const [queries] = codeBlocks(service).filter(({ language }) => language === 'promql')
    const exprs = queries!.code.split('\n\n').map((query) => query.replace(/^#.*\n/, '').trim())
    expect(exprs.length).toBeGreaterThan(3)
    const folder = temporaryFolder()
    onTestFinished(() => folder.remove())
    const rules = exprs.map((expr, i) => ({ record: `told:${i}`, expr }))
    const file = folder.write('rules.json', JSON.stringify({ groups: [{ name: 'told', rules }] }))
    const { stdout } = await promisify(execFile)('promtool', ['check', 'rules', file])
    expect(stdout).toContain(`SUCCESS: ${exprs.length} rules found`)
    const names = (await scraped()).names()
    for (const [name] of exprs.join(' ').matchAll(/slidegate_\w+/g)) {
      expect(names).toContain(name.replace(/_bucket$/, ''))
    }
  })
})
