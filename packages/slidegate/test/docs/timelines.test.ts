// tier: system
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { linkTargets, pages, ROOT } from './markdown.ts'

// The pictures of these folders show what the limiter does. Where that changes, `npm run timelines` draws them anew.

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

it('each picture is one that the limiter still draws, and none is missing', async () => {
  expect(committed).toEqual(await picturesIn(drawn))
})

describe('as the limiter draws it', () => {
  it.each(committed)('%s', async (file) => {
    expect(await readFile(join(DOCS, file), 'utf8')).toBe(await readFile(join(drawn, file), 'utf8'))
  })
})

it('each is shown on a page', () => {
  const shown = pages().flatMap(({ path, text }) =>
    linkTargets(text).map((target) => join(dirname(path), target)),
  )
  expect(committed.filter((file) => !shown.includes(join('docs', file)))).toEqual([])
})
