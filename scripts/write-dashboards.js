#!/usr/bin/env node
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { dashboards } from './dashboards/dashboards.js'

// Writes deploy/grafana/dashboards: `node scripts/write-dashboards.js`.

const root = fileURLToPath(new URL('..', import.meta.url))
const files = Object.entries(dashboards).map(([name, dashboard]) => {
  const file = `${root}deploy/grafana/dashboards/${name}.json`
  writeFileSync(file, JSON.stringify(dashboard, null, 2))
  return file
})
execFileSync(`${root}node_modules/.bin/biome`, ['format', '--write', ...files], { stdio: 'inherit' })
