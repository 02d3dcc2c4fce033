// tier: system
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../support/redis-server.ts'
import { type Commands, documented, END, type Ports, scriptOf, sessionOf } from './commands.ts'
import { codeBlocks, hasCommands, pages, ROOT } from './markdown.ts'
import { asDocumented } from './printed.ts'

// Runs every `sh` block of the README, the tutorial and the guides. The blocks of a page share a shell, in a folder that looks
// like a fresh clone. A `text` block right after one is its expected output.

const read = pages().filter(hasCommands)
const sessions = read.map(sessionOf).filter(({ steps }) => steps.some((step) => 'commands' in step))

let folder: string
beforeAll(async () => {
  // Imports resolve from here, and Git ignores it.
  const cache = join(ROOT, 'node_modules/.cache')
  await mkdir(cache, { recursive: true })
  folder = await mkdtemp(join(cache, 'slidegate-commands-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** Creates a folder that looks like a clone, inside an empty one. */
async function copy(): Promise<string> {
  const root = join(await mkdtemp(join(folder, 'page-')), 'slidegate')
  await mkdir(root)
  for (const name of await readdir(ROOT)) {
    if (name !== '.git' && !name.endsWith('.tgz')) await symlink(join(ROOT, name), join(root, name))
  }
  return root
}

/** Runs a script. Returns the output of each block, up to the first that fails. */
async function run(script: string, ports: Ports): Promise<{ code: number | null; printed: string[] }> {
  const shell = spawn('bash', ['-c', `exec 2>&1\n${script}`], {
    cwd: await copy(),
    // Runs in its own process group, so that its child processes can be stopped too.
    detached: true,
    timeout: 540_000,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  shell.stdout.setEncoding('utf8').on('data', (text) => (output += text))
  const closed = once(shell, 'close')
  const [code] = await once(shell, 'exit')
  try {
    process.kill(-shell.pid!, 'SIGKILL')
  } catch {
    // All processes have already exited.
  }
  await closed
  return { code, printed: output.split(END).map((each) => documented(each, ports)) }
}

describe('the commands of a page print the documented output', () => {
  it.each(sessions)('$page', { timeout: 600_000 }, async (session) => {
    const ports = { 3000: await freePort(), 6379: await freePort(), 8080: await freePort() }
    const { code, printed } = await run(scriptOf(session, ports), ports)
    const blocks = session.steps.filter((step): step is Commands => 'commands' in step)
    blocks.forEach(({ name, printed: expected }, i) => {
      if (expected === undefined || printed[i] === undefined) return
      expect(`${name}\n${asDocumented(printed[i], `${expected}\n`)}`).toBe(`${name}\n${expected}\n`)
    })
    const failed = code === 0 ? undefined : `${blocks[printed.length - 1]?.name}: ${printed.at(-1)}`
    expect(failed).toBe(undefined)
    expect(printed).toHaveLength(blocks.length + 1)
  })
})

it('every file that a page tells you to save is used by a later command', () => {
  const unused = sessions.flatMap(({ page, steps }) =>
    steps.flatMap((step, i) => {
      if (!('file' in step)) return []
      const isUsed = steps.slice(i).some((later) => 'commands' in later && later.commands.includes(step.file))
      return isUsed ? [] : [`${page}: ${step.file}`]
    }),
  )
  expect(unused).toEqual([])
})

it('blocks of shell commands use the language `sh`, so that they run', () => {
  const languages = new Set(['sh', 'bash', 'shell', 'zsh', 'console'])
  const notRun = read.flatMap(({ path, text }) =>
    codeBlocks(text)
      .filter(({ language }) => languages.has(language) && language !== 'sh')
      .map(({ language, code }) => `${path}: ${language}: ${code.split('\n')[0]}`),
  )
  expect(notRun).toEqual([])
})
