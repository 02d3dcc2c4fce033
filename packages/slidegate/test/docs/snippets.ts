import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort, startRedis } from '../support/redis-server.ts'
import { pages, ROOT } from './markdown.ts'
import { asDocumented } from './printed.ts'
import { expectedOutput, isServer, onServers, type Program, programsOf } from './programs.ts'

/** Pages whose snippets are tested together, because they need the same packages. */
export type PageGroup = 'readmes' | 'docs' | 'migrate'

/** Returns the group of a page. `undefined` if its snippets aren't tested. */
function groupOf(path: string): PageGroup | undefined {
  if (/^(packages\/[^/]+\/)?README\.md$/.test(path)) return 'readmes'
  if (/^docs\/migrate\/[^/]+\.md$/.test(path)) return 'migrate'
  if (/^docs\/((guides|ideas|decisions)\/)?[^/]+\.md$/.test(path)) return 'docs'
  return undefined
}

/** The environment of the snippets. */
export interface Surroundings {
  /** The server that replaces the documented one. It's flushed before each snippet. */
  readonly redisUrl: string
  /** Variables for the snippets' processes. */
  readonly env?: Readonly<Record<string, string>>
  stop(): Promise<void>
}

export interface TestedSnippets {
  readonly programs: readonly Program[]
  /** Starts a server and sends requests until it answers other than 200. Returns the statuses. */
  statusesOf(server: Program): Promise<(number | undefined)[]>
}

/**
 * Registers tests that snippets compile, and print the output in their comments.
 *
 * @param project the folder, relative to the root, whose `node_modules` has the packages that the snippets import
 */
export function testSnippets(
  group: PageGroup,
  project: string,
  start: () => Promise<Surroundings> = startRedisAlone,
): TestedSnippets {
  const programs = pages()
    .filter(({ path }) => groupOf(path) === group)
    .flatMap(programsOf)

  let surroundings: Surroundings
  let redis: Redis
  let folder: string
  let complaints: string
  beforeAll(async () => {
    surroundings = await start()
    redis = new Redis(surroundings.redisUrl)
    // Imports resolve from here, and Git ignores it.
    const cache = join(ROOT, project, 'node_modules/.cache')
    await mkdir(cache, { recursive: true })
    folder = await mkdtemp(join(cache, 'slidegate-docs-'))
    complaints = await compile(programs, folder, surroundings.redisUrl)
  })
  afterAll(async () => {
    await redis.quit()
    await surroundings.stop()
    await rm(folder, { recursive: true, force: true })
  })

  const linesOf = (program: Program) =>
    complaints.split('\n').filter((line) => line.startsWith(`${fileOf(program)}.`))

  describe('the compiler accepts the snippet', () => {
    it.each(programs)('$name', (program) => {
      expect(linesOf(program)).toEqual([])
    })
  })

  it('the compiler reports no error outside the snippets', () => {
    expect(complaints === '' || programs.some((program) => linesOf(program).length > 0)).toBe(true)
  })

  describe('the snippet prints the output in its comments', () => {
    const isRun = (program: Program) => !program.isSaved && !isServer(program)
    programs.forEach((program, i) => {
      const next = programs[i + 1]
      // A snippet that the next one continues runs there.
      const runsInNext = next !== undefined && isRun(next) && next.code.startsWith(`${program.code}\n`)
      if (!isRun(program) || runsInNext) return
      it(program.name, async () => {
        await redis.flushall()
        const { ended, output } = run(program)
        const [code] = await ended
        const expected = expectedOutput(program)
        expect({ code, output: asDocumented(output.text, expected) }).toEqual({ code: 0, output: expected })
      })
    })
  })

  /** Runs a compiled snippet in its own process. */
  function run(program: Program, port = 0) {
    const file = join(folder, 'out', `${fileOf(program)}.mjs`)
    const env = { ...process.env, ...surroundings.env, PORT: `${port}` }
    const child = spawn(process.execPath, [file], { env })
    const output = { text: '' }
    child.stdout.on('data', (data) => (output.text += data))
    child.stderr.on('data', (data) => (output.text += data))
    return { child, output, ended: once(child, 'close') }
  }

  return {
    programs,
    async statusesOf(program) {
      await redis.flushall()
      const port = await freePort()
      const { child, ended, output } = run(program, port)
      const ask = () => fetch(`http://127.0.0.1:${port}/`)
      let response: Response | undefined
      while (response === undefined && child.exitCode === null) {
        response = await ask().catch(() => undefined)
        if (response === undefined) await delay(20)
      }
      const statuses = [response?.status]
      while (statuses.at(-1) === 200 && statuses.length < 1000) statuses.push((await ask()).status)
      child.kill()
      await ended
      expect(output.text).toBe('')
      return statuses
    },
  }
}

/** Registers a test for each server: it admits requests until its limit, then denies them. */
export function testServers({ programs, statusesOf }: TestedSnippets): void {
  describe('the server admits requests until its limit, then responds with 429', () => {
    for (const program of programs.filter((each) => !each.isSaved && isServer(each)))
      it(program.name, async () => {
        const statuses = await statusesOf(program)
        expect(statuses.length).toBeGreaterThan(1)
        expect(statuses.at(-1)).toBe(429)
      })
  })
}

async function startRedisAlone(): Promise<Surroundings> {
  const server = await startRedis()
  return { redisUrl: server.url, stop: () => server.stop() }
}

const fileOf = (program: Program) => program.name.replace(/\W+/g, '-')

/** Compiles all programs at once. Returns the output of the compiler. */
async function compile(programs: readonly Program[], folder: string, redisUrl: string): Promise<string> {
  // Compiles snippets of other packages separately: two Fastify plugins declare different route options.
  const ours: string[] = []
  const theirs: string[] = []
  for (const program of programs) {
    const file = `${fileOf(program)}.${program.extension}`
    await writeFile(join(folder, file), onServers(program, redisUrl).code)
    if (/from 'slidegate/.test(program.code)) ours.push(file)
    else theirs.push(file)
  }
  const compilerOptions = {
    ...{ rootDir: '.', outDir: 'out', allowJs: true, checkJs: true },
    ...{ declaration: false, isolatedDeclarations: false, sourceMap: false, noUnusedLocals: false },
    // These are the settings of Nest projects.
    ...{ experimentalDecorators: true, emitDecoratorMetadata: true },
  }
  let complaints = ''
  for (const [name, files] of Object.entries({ ours, theirs })) {
    if (files.length === 0) continue
    const config = { extends: join(ROOT, 'tsconfig.base.json'), compilerOptions, files }
    const project = join(folder, `tsconfig.${name}.json`)
    await writeFile(project, JSON.stringify(config))
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [tsc, '-p', project], {
      cwd: folder,
    }).catch((e) => e)
    complaints += `${stdout}${stderr}`
  }
  return complaints
}
