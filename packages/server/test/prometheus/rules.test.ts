// tier: system
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { anchors, ROOT } from '../../../slidegate/test/docs/markdown.ts'
import { deployed, replaced } from '../gateway/support/programs.ts'
import { slidegateHere, temporaryFolder } from '../support/cli.ts'
import { unknownMetrics } from './known-metrics.ts'

const FOLDER = join(ROOT, 'deploy/prometheus')
const promtool = (...words: string[]) => promisify(execFile)('promtool', words, { cwd: FOLDER })

interface Rule {
  readonly alert?: string
  readonly expr: string
  readonly labels?: { readonly severity: string }
  readonly annotations?: Readonly<Record<string, string>>
}

interface Case {
  readonly alertname: string
  readonly exp_alerts: readonly object[]
}

const text = readFileSync(join(FOLDER, 'alerts.yaml'), 'utf8')
const rules: Rule[] = parse(text).groups.flatMap((group: { rules: Rule[] }) => group.rules)
const alerts = rules.filter(({ alert }) => alert !== undefined)
const cases: Case[] = parse(readFileSync(join(FOLDER, 'rules.test.yaml'), 'utf8')).tests.flatMap(
  (each: { alert_rule_test: Case[] }) => each.alert_rule_test,
)
const page = readFileSync(join(ROOT, 'docs/alerts.md'), 'utf8')

describe('promtool', () => {
  it('accepts the rules', async () => {
    const { stdout } = await promtool('check', 'rules', 'alerts.yaml')
    expect(stdout).toContain(`SUCCESS: ${rules.length} rules found`)
  })

  it('confirms that each alert fires exactly when it should', async () => {
    const { stdout } = await promtool('test', 'rules', 'rules.test.yaml')
    expect(stdout).toContain('SUCCESS')
  })

  it('accepts the configuration with these rules', async () => {
    const folder = temporaryFolder()
    try {
      const token = folder.write('read-token', 'the-token-of-prometheus')
      folder.write('alerts.yaml', text)
      const config = replaced(await deployed('prometheus/prometheus.yaml'), {
        '/run/secrets/read-token': token,
      })
      const file = folder.write('prometheus.yaml', config)
      const { stdout } = await promtool('check', 'config', file)
      expect(stdout).toContain('1 rule files found')
    } finally {
      folder.remove()
    }
  })
})

describe.each(alerts.map(({ alert, ...rule }) => [alert!, rule] as const))('%s', (alert, rule) => {
  it('fires in one test case and stays silent in another', () => {
    const own = cases.filter(({ alertname }) => alertname === alert).map((each) => each.exp_alerts.length)
    expect(own.some((count) => count > 0)).toBe(true)
    // One case has no events at all, so at least one more must stay silent.
    expect(own.filter((count) => count === 0).length).toBeGreaterThanOrEqual(
      alert === 'SlidegateDown' ? 1 : 2,
    )
  })

  it('includes a severity, a summary, a description, and links to its runbook and to the dashboard', () => {
    expect(rule.labels?.severity).toMatch(/^(critical|warning|info)$/)
    const { summary, description, runbook_url, dashboard_url, ...others } = rule.annotations!
    expect(others).toEqual({})
    expect(summary!.length).toBeGreaterThan(10)
    expect(description!.length).toBeGreaterThan(10)
    expect(runbook_url).toBe(`https://slidegate.example/docs/alerts.md#${alert.toLowerCase()}`)
    expect(anchors(page)).toContain(alert.toLowerCase())
    const [, place] = /^https:\/\/slidegate\.example\/#(\/.*)$/.exec(dashboard_url!)!
    const ofLimiter = '/limiters/{{ $labels.limiter }}'
    expect(['/', '/configuration', ofLimiter]).toContain(place)
    expect(place === ofLimiter).toBe(summary!.includes('{{ $labels.limiter }}'))
  })

  it('links to a paragraph with Look, Do and False alarm', () => {
    const paragraph = page.split(/^#+ /m).find((each) => each.startsWith(`${alert}\n`))
    for (const part of ['Look', 'Do', 'False alarm']) expect(paragraph).toContain(`\n- **${part}:** `)
  })
})

it('the rules use metrics that the service exposes', async () => {
  expect(await unknownMetrics(text)).toEqual([])
})

it('the test cases use metrics that the service exposes', async () => {
  expect(await unknownMetrics(readFileSync(join(FOLDER, 'rules.test.yaml'), 'utf8'))).toEqual([])
})

it('the page only describes existing alerts, and uses existing commands', async () => {
  const headings = Array.from(page.matchAll(/^### (\w+)$/gm), ([, heading]) => heading!)
  expect(headings.sort()).toEqual(alerts.map(({ alert }) => alert!).sort())
  const commands = new Set(Array.from(page.matchAll(/`slidegate ([a-z]+)/g), ([, command]) => command!))
  expect(commands.size).toBeGreaterThan(5)
  for (const command of commands) {
    const { code, stdout } = await slidegateHere([command, '--help'])
    expect({ command, code }).toEqual({ command, code: 0 })
    expect(stdout).toContain(`slidegate ${command}`)
  }
})
