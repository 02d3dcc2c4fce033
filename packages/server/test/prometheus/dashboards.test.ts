import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { anchors, ROOT } from '../../../slidegate/test/docs/markdown.ts'
import { labelAsked, panelsOf, questionsOf, written } from './dashboards.ts'
import { unknownMetrics } from './known-metrics.ts'

const FOLDER = join(ROOT, 'deploy/grafana/dashboards')
const alerts = anchors(readFileSync(join(ROOT, 'docs/alerts.md'), 'utf8'))

it('every dashboard has a file, and there are no others', () => {
  const names = Object.keys(written).map((name) => `${name}.json`)
  expect(readdirSync(FOLDER).sort()).toEqual(names.sort())
})

it('every dashboard has a unique ID', () => {
  const uids = Object.values(written).map(({ uid }) => uid)
  expect(new Set(uids).size).toBe(uids.length)
})

describe.each(Object.entries(written))('%s', (name, dashboard) => {
  const panels = panelsOf(dashboard)
  const text = readFileSync(join(FOLDER, `${name}.json`), 'utf8')

  it('equals the output of scripts/write-dashboards.js', () => {
    expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(dashboard)))
  })

  it('uses metrics that the service exposes', async () => {
    expect(await unknownMetrics(text)).toEqual([])
  })

  it('gives each panel a description, a unit and the chosen data source', () => {
    expect(panels.length).toBeGreaterThan(10)
    for (const { title, description, datasource, fieldConfig, targets } of panels) {
      expect({ title, length: description!.length > 10 }).toEqual({ title, length: true })
      expect(datasource!.uid).toBe('$datasource')
      expect(fieldConfig!.defaults.unit).toMatch(/^(short|reqps|ops|percentunit|s|bytes|Bps)$/)
      expect(targets!.length).toBeGreaterThan(0)
    }
    expect(dashboard.templating.list[0]).toMatchObject({ type: 'datasource', name: 'datasource' })
  })

  it('uses rate intervals that match the scale', () => {
    const intervals = questionsOf(dashboard).flatMap(({ expr }) =>
      Array.from(expr.matchAll(/(\w+)\([^()]*\[(.*?)\]\)/g), ([, call, over]) => `${call} ${over}`),
    )
    expect(intervals.length).toBeGreaterThan(10)
    const fits = /^(rate \$__(rate_interval|range)|increase (5m|\$__(range|rate_interval)))$/
    expect(intervals.filter((each) => !fits.test(each))).toEqual([])
  })

  it('arranges panels without overlap, with unique IDs', () => {
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

  it('links to existing paragraphs and dashboards', () => {
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
