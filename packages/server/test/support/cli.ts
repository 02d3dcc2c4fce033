import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Report } from '../../../replay/src/report/report.ts'
import { type Bin, run } from '../../src/main.ts'

const BIN = fileURLToPath(new URL('../../bin/slidegate.js', import.meta.url))

export interface Outcome {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs the built command, with `input` on its standard input. */
export function slidegate(
  words: readonly string[],
  input: string | Buffer = '',
  env: NodeJS.ProcessEnv = {},
): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [BIN, ...words], { env: { ...process.env, ...env } })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, stdout, stderr }))
    // A command that fails immediately doesn't read its input.
    child.stdin.on('error', () => {})
    child.stdin.end(input)
  })
}

/** Runs a command in this process, which is much faster. Reads no input; one command at a time. */
export async function slidegateHere(
  words: readonly string[],
  env: NodeJS.ProcessEnv = {},
  bin: Bin = 'slidegate',
): Promise<Outcome> {
  const { exitCode, env: before, stdout, stderr } = process
  const writes = [stdout.write, stderr.write] as const
  const said = ['', '']
  const keep = (i: number) => (text: string | Uint8Array) => {
    said[i] += String(text)
    return true
  }
  process.exitCode = undefined
  process.env = { ...before, ...env }
  for (const [name, value] of Object.entries(env)) if (value === undefined) delete process.env[name]
  Object.assign(stdout, { write: keep(0) })
  Object.assign(stderr, { write: keep(1) })
  try {
    await run(words, bin)
    return { code: Number(process.exitCode ?? 0), stdout: said[0]!, stderr: said[1]! }
  } finally {
    Object.assign(stdout, { write: writes[0] })
    Object.assign(stderr, { write: writes[1] })
    Object.assign(process, { exitCode, env: before })
  }
}

/** Returns the JSON report of a replay, which must succeed. Runs the built command only if there is input. */
export async function replayJson(words: readonly string[], input?: string | Buffer): Promise<Report> {
  const replay = ['replay', ...words, '--json']
  const { code, stdout, stderr } = await (input === undefined
    ? slidegateHere(replay)
    : slidegate(replay, input))
  if (code !== 0 || stderr !== '') throw new Error(`exit code ${code}: ${stderr}`)
  return JSON.parse(stdout) as Report
}

/** Creates a temporary folder with a `write` helper. */
export function temporaryFolder(): {
  path: string
  write(name: string, content: string | Buffer): string
  remove(): void
} {
  const path = mkdtempSync(join(tmpdir(), 'slidegate-cli-'))
  return {
    path,
    write(name, content) {
      const file = join(path, name)
      writeFileSync(file, content)
      return file
    },
    remove: () => rmSync(path, { recursive: true, force: true }),
  }
}
