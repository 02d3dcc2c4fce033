import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { anchors, ROOT } from '../../../slidegate/test/docs/markdown.ts'
import { labelAsked, panelsOf, questionsOf, written } from './dashboards.ts'
import { unknownMetrics } from './known-metrics.ts'

const FOLDER = join(ROOT, 'deploy/grafana/dashboards')
const alerts = anchors(readFileSync(join(ROOT, 'docs/alerts.md'), 'utf8'))

it('there is a file for each dashboard, and no other', () => {
  const names = Object.keys(written).map((name) => `${name}.json`)
  expect(readdirSync(FOLDER).sort()).toEqual(names.sort())
})

it('each is found by a name of its own', () => {
  const uids = Object.values(written).map(({ uid }) => uid)
  expect(new Set(uids).size).toBe(uids.length)
})

describe.each(Object.entries(written))('%s', (name, dashboard) => {
  const panels = panelsOf(dashboard)
  const text = readFileSync(join(FOLDER, `${name}.json`), 'utf8')

  it('is what scripts/write-dashboards.js writes', () => {
    expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(dashboard)))
  })

  it('asks for metrics that the service exposes', async () => {
    expect(await unknownMetrics(text)).toEqual([])
  })

  it('says of each panel what it shows, in which unit, and asks the Prometheus that was chosen', () => {
    expect(panels.length).toBeGreaterThan(10)
    for (const { title, description, datasource, fieldConfig, targets } of panels) {
      expect({ title, length: description!.length > 10 }).toEqual({ title, length: true })
      expect(datasource!.uid).toBe('$datasource')
      expect(fieldConfig!.defaults.unit).toMatch(/^(short|reqps|ops|percentunit|s|bytes)$/)
      expect(targets!.length).toBeGreaterThan(0)
    }
    expect(dashboard.templating.list[0]).toMatchObject({ type: 'datasource', name: 'datasource' })
  })

  it('asks for rates over intervals that fit the scale', () => {
    const intervals = questionsOf(dashboard).flatMap(({ expr }) =>
      Array.from(expr.matchAll(/(\w+)\([^()]*\[(.*?)\]\)/g), ([, call, over]) => `${call} ${over}`),
    )
    expect(intervals.length).toBeGreaterThan(10)
    const fits = /^(rate \$__(rate_interval|range)|increase (5m|\$__(range|rate_interval)))$/
    expect(intervals.filter((each) => !fits.test(each))).toEqual([])
  })

  it('lays panels out side by side, each under a number of its own', () => {
    const { panels: all } = dashboard
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length)
    for (const { gridPos: a, id } of all) {
      expect(a.x + a.w).toBeLessThanOrEqual(24)
      const over = all.filter(
        ({ gridPos: b, id: other }) =>
          other !== id && a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h,
      )
      expect(over).toEqual([])
    }
  })

  it('links to paragraphs and dashboards that there are', () => {
    const linked = Array.from(text.matchAll(/\/docs\/alerts\.md#([\w-]+)/g), ([, anchor]) => anchor!)
    expect(linked.length).toBeGreaterThan(5)
    expect(linked.filter((anchor) => !alerts.includes(anchor))).toEqual([])
    const uids = Object.values(written).map(({ uid }) => uid)
    const others = Array.from(text.matchAll(/\/d\/([\w-]+)/g), ([, uid]) => uid!)
    expect(others.filter((uid) => !uids.includes(uid))).toEqual([])
  })

  it('uses the variables that it declares', () => {
    const declared = dashboard.templating.list.map(({ name }) => name)
    const used = new Set(Array.from(text.matchAll(/\$([a-z]\w*)/g), ([, variable]) => variable!))
    expect([...used].sort()).toEqual(declared.sort())
    for (const variable of dashboard.templating.list.slice(1)) labelAsked(variable)
  })
})
