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
  it('finds the rules right', async () => {
    const { stdout } = await promtool('check', 'rules', 'alerts.yaml')
    expect(stdout).toContain(`SUCCESS: ${rules.length} rules found`)
  })

  it('sees each alert fire where it should, and not where it should not', async () => {
    const { stdout } = await promtool('test', 'rules', 'rules.test.yaml')
    expect(stdout).toContain('SUCCESS')
  })

  it('finds the configuration right, with these rules', async () => {
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
  it('has a case in which it fires, and one in which it does not', () => {
    const own = cases.filter(({ alertname }) => alertname === alert).map((each) => each.exp_alerts.length)
    expect(own.some((count) => count > 0)).toBe(true)
    // Beside that in which nothing has happened.
    expect(own.filter((count) => count === 0).length).toBeGreaterThanOrEqual(
      alert === 'SlidegateDown' ? 1 : 2,
    )
  })

  it('says how bad it is, what has happened, and where it is told what to do', () => {
    expect(rule.labels?.severity).toMatch(/^(critical|warning|info)$/)
    const { summary, description, runbook_url, ...others } = rule.annotations!
    expect(others).toEqual({})
    expect(summary!.length).toBeGreaterThan(10)
    expect(description!.length).toBeGreaterThan(10)
    expect(runbook_url).toBe(`https://slidegate.example/docs/alerts.md#${alert.toLowerCase()}`)
    expect(anchors(page)).toContain(alert.toLowerCase())
  })

  it('has a paragraph that says where to look, what to do, and when it is a false alarm', () => {
    const paragraph = page.split(/^#+ /m).find((each) => each.startsWith(`${alert}\n`))
    for (const part of ['Look', 'Do', 'False alarm']) expect(paragraph).toContain(`\n- **${part}:** `)
  })
})

it('the rules ask for metrics that the service exposes', async () => {
  expect(await unknownMetrics(text)).toEqual([])
})

it('the cases are of metrics that the service exposes', async () => {
  expect(await unknownMetrics(readFileSync(join(FOLDER, 'rules.test.yaml'), 'utf8'))).toEqual([])
})

it('the page has no paragraph of an alert that there is not, and names commands that there are', async () => {
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
