// tier: system
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { linkTargets, pages, ROOT } from './markdown.ts'

// The pictures of docs/limits and docs/ideas match the limiter. If it changes, `npm run timelines` redraws them.

const DOCS = join(ROOT, 'docs')
const committed = await picturesIn(DOCS)

async function picturesIn(docs: string): Promise<string[]> {
  const folders = ['limits', 'ideas'].map(async (folder) => {
    const files = await readdir(join(docs, folder))
    return files.filter((file) => file.endsWith('.svg')).map((file) => `${folder}/${file}`)
  })
  return (await Promise.all(folders)).flat().sort()
}

let drawn: string
beforeAll(async () => {
  drawn = await mkdtemp(join(tmpdir(), 'slidegate-timelines-'))
  await promisify(execFile)(process.execPath, [join(ROOT, 'scripts/draw-timelines.js'), drawn])
})
afterAll(() => rm(drawn, { recursive: true, force: true }))

it('docs/limits and docs/ideas contain exactly the pictures that the script draws', async () => {
  expect(committed).toEqual(await picturesIn(drawn))
})

describe('a picture matches the limiter', () => {
  it.each(committed)('%s', async (file) => {
    expect(await readFile(join(DOCS, file), 'utf8')).toBe(await readFile(join(drawn, file), 'utf8'))
  })
})

it('each picture is used on a page', () => {
  const shown = pages().flatMap(({ path, text }) =>
    linkTargets(text).map((target) => join(dirname(path), target)),
  )
  expect(committed.filter((file) => !shown.includes(join('docs', file)))).toEqual([])
})
