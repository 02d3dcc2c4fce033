#!/usr/bin/env node
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pictures } from './timelines/pictures.js'

// Draws the pictures of docs/limits and docs/ideas: `node scripts/draw-timelines.js [folder]`.
// They show real decisions on a manual clock, so they are accurate and always the same.

const [folder = fileURLToPath(new URL('../docs/', import.meta.url))] = process.argv.slice(2)

for (const [name, draw] of Object.entries(pictures)) {
  const file = join(folder, name.includes('/') ? `${name}.svg` : `limits/${name}.svg`)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, await draw())
}
