import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  utimesSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { bundled } from '../../../slidegate/test/support/bundled.ts'
import { LineFile } from '../../src/capture/line-file.ts'
import { replayJson, temporaryFolder } from '../support/cli.ts'

const folder = temporaryFolder()
afterAll(folder.remove)

const APPENDER = await bundled(new URL('./appender.js', import.meta.url))

function appender(...words: readonly (string | number)[]) {
  return spawn(process.execPath, [APPENDER, ...words.map(String)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}

function linesOf(path: string): string[] {
  return readFileSync(path, 'utf8').split('\n').slice(0, -1)
}

const any = (): boolean => true

describe('several processes that append to the same file', () => {
  it('keep lines intact', async () => {
    const path = join(folder.path, 'shared.jsonl')
    const codes = await Promise.all(
      ['a', 'b', 'c'].map(async (name) => (await once(appender(path, name, 200), 'exit'))[0]),
    )
    expect(codes).toEqual([0, 0, 0])
    // A process that opens the file during another's write ends the torn line that it sees. This leaves an empty line.
    const lines = linesOf(path).filter((line) => line !== '')
    const keys = lines.map((line) => (JSON.parse(line) as { key: string }).key)
    expect(keys).toHaveLength(3 * 200 * 20)
    expect(new Set(keys).size).toBe(keys.length)
  })

  it('rotate together and keep one full file', async () => {
    const inside = join(folder.path, 'rotated')
    mkdirSync(inside)
    const path = join(inside, 'capture.jsonl')
    const maxBytes = 200_000
    const codes = await Promise.all(
      ['a', 'b', 'c'].map(async (name) => (await once(appender(path, name, 300, maxBytes), 'exit'))[0]),
    )
    expect(codes).toEqual([0, 0, 0])
    expect(readdirSync(inside).sort()).toEqual(['capture.jsonl', 'capture.jsonl.1'])
    // The size depends on how long the rotating process is delayed.
    expect(statSync(`${path}.1`).size).toBeGreaterThan(maxBytes / 2)
    const lines = [...linesOf(`${path}.1`), ...linesOf(path)].filter((line) => line !== '')
    const kept = lines.map((line) => JSON.parse(line).key as string)
    expect(new Set(kept).size).toBe(kept.length)
    // Each process's newest lines are kept.
    for (const name of ['a', 'b', 'c']) {
      const numbers = kept.filter((key) => key.startsWith(name)).map((key) => Number(key.slice(2)))
      if (numbers.length > 0) expect(numbers.at(-1)).toBe(300 * 20 - 1)
    }
  })

  it('never rotate a new file', async () => {
    const path = join(folder.path, 'raced.jsonl')
    const files = Array.from({ length: 8 }, () => new LineFile(path, { maxBytes: 8192 }))
    let changes = 0
    for (let round = 0; round < 150; round++) {
      await Promise.all(files.map((file) => file.append(['x'.repeat(500)])))
      const former = statSync(`${path}.1`, { throwIfNoEntry: false })
      if (former === undefined) continue
      changes++
      expect(former.size).toBeGreaterThan(8192 - 8 * 501 - 1)
      // In the worst case, all processes wrote when the file was nearly full, and all but one wrote again while that
      // one rotated it.
      expect(former.size).toBeLessThanOrEqual(8192 + 15 * 501)
    }
    expect(changes).toBeGreaterThan(100)
    await Promise.all(files.map((file) => file.close()))
  })

  it('leave whole lines after they are killed', async () => {
    const path = join(folder.path, 'killed.jsonl')
    const children = ['a', 'b'].map((name) => appender(path, name, 1_000_000))
    await Promise.all(children.map((child) => once(child.stdout, 'data')))
    const ends = children.map((child) => once(child, 'exit'))
    for (const child of children) child.kill('SIGKILL')
    await Promise.all(ends)
    const report = await replayJson([path, '--limit', '10/1m', '--key', 'key'])
    expect(report.requests).toBeGreaterThan(300)
    // Skips at most one torn line per process, and possibly the line after it.
    expect(report.skipped).toBeLessThanOrEqual(2)
  })
})

describe('a line file', () => {
  it('ends a torn line before it appends', async () => {
    const path = folder.write('torn.jsonl', '{"time":1700000000000,"key":"a"}\n{"time":17000')
    const file = new LineFile(path)
    await file.append(['{"time":1700000000000,"key":"b"}'])
    await file.close()
    expect(linesOf(path)).toEqual([
      '{"time":1700000000000,"key":"a"}',
      '{"time":17000',
      '{"time":1700000000000,"key":"b"}',
    ])
    const report = await replayJson([path, '--limit', '10/1m', '--key', 'key'])
    expect([report.requests, report.skippedReasons]).toEqual([2, { 'not a JSON object': 1 }])
  })

  it('follows a rotation by another program', async () => {
    const path = join(folder.path, 'moved.jsonl')
    const file = new LineFile(path)
    await file.append(['1', '2'])
    renameSync(path, `${path}-yesterday`)
    await file.append(['3'])
    await file.close()
    expect([linesOf(`${path}-yesterday`), linesOf(path)]).toEqual([['1', '2'], ['3']])
  })

  it('waits for a rotation by another process, up to a timeout', async () => {
    const path = join(folder.path, 'locked.jsonl')
    const file = new LineFile(path, { maxBytes: 4096 })
    await file.append(['x'.repeat(4000)])
    folder.write('locked.jsonl.lock', '')
    await file.append(['y'.repeat(4000)])
    expect(linesOf(path)).toHaveLength(2)
    utimesSync(`${path}.lock`, 0, 0)
    await file.append(['z'])
    await file.append(['z'])
    await file.close()
    expect([linesOf(file.formerPath).length, linesOf(path)]).toEqual([3, ['z']])
  })

  it('returns the newest matching lines, including those of the previous file', async () => {
    const path = join(folder.path, 'newest.jsonl')
    const file = new LineFile(path)
    expect(await file.newest(10, any)).toEqual([])
    // The file is longer than a chunk and has multi-byte characters.
    const lines = Array.from({ length: 6000 }, (_, i) => `${i} ${'ü'.repeat(i % 150)}`)
    appendFileSync(`${path}.1`, `${lines.slice(0, 3000).join('\n')}\n`)
    await file.append(lines.slice(3000))
    expect(await file.newest(3, any)).toEqual(lines.slice(-3))
    expect(await file.newest(5000, any)).toEqual(lines.slice(1000))
    expect(await file.newest(1e6, any)).toEqual(lines)
    const odd = (line: string) => Number(line.split(' ')[0]) % 2 === 1
    expect(await file.newest(2, odd)).toEqual([lines[5997], lines[5999]])
    await file.close()
  })
})
