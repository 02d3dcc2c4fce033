#!/usr/bin/env node
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pictures } from './timelines/pictures.js'

// Draws the pictures of docs/limits.md: `node scripts/draw-timelines.js [folder]`. They show what the limiter, as it is
// built, answers to requests by a clock that is set by hand: so what is drawn is what it does, and always the same.

const [folder = fileURLToPath(new URL('../docs/limits/', import.meta.url))] = process.argv.slice(2)

mkdirSync(folder, { recursive: true })
for (const [name, draw] of Object.entries(pictures)) writeFileSync(join(folder, `${name}.svg`), await draw())
