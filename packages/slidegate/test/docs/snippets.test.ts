// tier: system
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort, type RedisServer, startRedis } from '../support/redis-server.ts'
import { pages, ROOT } from './markdown.ts'
import { type OpenRedis, startOpenRedis } from './open-redis.ts'
import { asSaid } from './printed.ts'
import { expectedOutput, isServer, needsRedis, onServers, type Program, programsOf } from './programs.ts'
import { startUpstashShim, type UpstashShim } from './upstash-shim.ts'

// Every snippet of the documentation is compiled as it stands there and run: it must print what its comments
// say, and a server must serve until its limit. On pages about moving here those of other packages run, too.

const programs = pages()
  .filter(({ path }) =>
    /^((packages\/[^/]+\/)?README|docs\/((migrate|guides|ideas|decisions)\/)?[^/]+)\.md$/.test(path),
  )
  .flatMap(programsOf)
const snippets = programs.filter(({ isSaved }) => !isSaved)

const fileOf = (program: Program) => program.name.replace(/\W+/g, '-')
const isMoving = ({ page }: Program) => page.startsWith('docs/migrate/')

let server: RedisServer
let redis: Redis
let open: OpenRedis
let upstash: UpstashShim
let folder: string
let complaints: string
beforeAll(async () => {
  server = await startRedis()
  redis = new Redis(server.port)
  open = await startOpenRedis()
  upstash = await startUpstashShim(open.redis)
  // Where the packages of the workspace are found, and Git looks at nothing.
  const cache = join(ROOT, 'node_modules/.cache')
  await mkdir(cache, { recursive: true })
  folder = await mkdtemp(join(cache, 'slidegate-docs-'))
  complaints = await compile()
})
afterAll(async () => {
  await upstash.close()
  await redis.quit()
  await Promise.all([server.stop(), open.stop()])
  await rm(folder, { recursive: true, force: true })
})

/** Compiles all of them at once; answers what the compiler has to say. */
async function compile(): Promise<string> {
  // Those of other packages apart: of two plugins for Fastify each says what routes may be configured by.
  const ours: string[] = []
  const theirs: string[] = []
  for (const program of programs) {
    const file = `${fileOf(program)}.${program.extension}`
    await writeFile(
      join(folder, file),
      onServers(program, (isMoving(program) ? open.server : server).url).code,
    )
    if (/from 'slidegate/.test(program.code)) ours.push(file)
    else theirs.push(file)
  }
  const compilerOptions = {
    ...{ rootDir: '.', outDir: 'out', allowJs: true, checkJs: true },
    ...{ declaration: false, isolatedDeclarations: false, sourceMap: false, noUnusedLocals: false },
    // As in the projects that Nest sets up.
    ...{ experimentalDecorators: true, emitDecoratorMetadata: true },
  }
  let complaints = ''
  for (const [name, files] of Object.entries({ ours, theirs })) {
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

/** Runs a compiled snippet in a process of its own. */
function run(program: Program, port = 0) {
  const file = join(folder, 'out', `${fileOf(program)}.mjs`)
  const child = spawn(process.execPath, [file], { env: { ...process.env, ...upstash.env, PORT: `${port}` } })
  const output = { text: '' }
  child.stdout.on('data', (data) => (output.text += data))
  child.stderr.on('data', (data) => (output.text += data))
  return { child, output, ended: once(child, 'close') }
}

it('there are snippets, on memory, on Redis and in a server', () => {
  expect(programs.filter(isServer).length).toBeGreaterThan(0)
  expect(programs.filter(needsRedis).length).toBeGreaterThan(1)
  expect(programs.filter((program) => !isServer(program) && !needsRedis(program)).length).toBeGreaterThan(3)
})

describe('the compiler has nothing to say', () => {
  const linesOf = (program: Program) =>
    complaints.split('\n').filter((line) => line.startsWith(`${fileOf(program)}.`))

  it.each(programs)('$name', (program) => {
    expect(linesOf(program)).toEqual([])
  })

  it('of anything else', () => {
    expect(complaints === '' || programs.some((program) => linesOf(program).length > 0)).toBe(true)
  })
})

describe('prints what it says', () => {
  const printing = snippets.filter((program) => !isServer(program))
  for (const program of printing)
    it(program.name, async () => {
      await forget()
      const { ended, output } = run(program)
      const [code] = await ended
      const said = expectedOutput(program)
      expect({ code, output: asSaid(output.text, said) }).toEqual({ code: 0, output: said })
    })
})

async function forget(): Promise<void> {
  await Promise.all([redis.flushall(), open.redis.flushall()])
}

/** What a server answers until it answers anything but 200. */
async function serve(program: Program): Promise<(number | undefined)[]> {
  await forget()
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
}

describe('serves until its limit, then answers with 429', () => {
  const servers = snippets.filter((program) => isServer(program) && !isMoving(program))
  for (const program of servers)
    it(program.name, async () => {
      const statuses = await serve(program)
      expect(statuses.length).toBeGreaterThan(1)
      expect(statuses.at(-1)).toBe(429)
    })
})

describe('serves as many after moving as before', () => {
  const servers = programs.filter((program) => isServer(program) && isMoving(program))
  it.each([...new Set(servers.map(({ page }) => page))])('%s', async (moving) => {
    const told: (number | undefined)[][] = []
    for (const program of servers.filter(({ page }) => page === moving)) told.push(await serve(program))
    const [before, ...after] = told
    expect(before!.length).toBeGreaterThan(1)
    expect(before!.at(-1)).toBe(429)
    expect(after.length).toBeGreaterThan(0)
    for (const statuses of after) expect(statuses).toEqual(before)
  })
})
