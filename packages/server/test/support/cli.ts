import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Report } from '../../src/replay/report.ts'

const BIN = fileURLToPath(new URL('../../bin/slidegate.js', import.meta.url))

export interface Outcome {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs the built command as a user does; `input` goes to its standard input. */
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
    // A command that fails at once does not read its input.
    child.stdin.on('error', () => {})
    child.stdin.end(input)
  })
}

/** The report of a replay with `--json`, which must succeed. */
export async function replayJson(words: readonly string[], input?: string | Buffer): Promise<Report> {
  const { code, stdout, stderr } = await slidegate(['replay', ...words, '--json'], input)
  if (code !== 0 || stderr !== '') throw new Error(`exit code ${code}: ${stderr}`)
  return JSON.parse(stdout) as Report
}

/** A temporary folder that `write` puts files into. */
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
