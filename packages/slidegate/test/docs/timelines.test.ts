import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { linkTargets, ROOT } from './markdown.ts'

// The pictures of docs/limits.md show what the limiter does. Where that changes, `npm run timelines` draws them anew.

const COMMITTED = join(ROOT, 'docs/limits')
const committed = await readdir(COMMITTED)

let drawn: string
beforeAll(async () => {
  drawn = await mkdtemp(join(tmpdir(), 'slidegate-timelines-'))
  await promisify(execFile)(process.execPath, [join(ROOT, 'scripts/draw-timelines.js'), drawn])
})
afterAll(() => rm(drawn, { recursive: true, force: true }))

it('each picture is one that the limiter still draws, and none is missing', async () => {
  expect(committed).toEqual(await readdir(drawn))
})

describe('as the limiter draws it', () => {
  it.each(committed)('%s', async (file) => {
    expect(await readFile(join(COMMITTED, file), 'utf8')).toBe(await readFile(join(drawn, file), 'utf8'))
  })
})

it('each is shown on the page', async () => {
  const page = await readFile(join(ROOT, 'docs/limits.md'), 'utf8')
  expect(linkTargets(page).filter((target) => target.endsWith('.svg'))).toEqual(
    expect.arrayContaining(committed.map((file) => `limits/${file}`)),
  )
})
