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
import { expectedOutput, isServer, needsRedis, onServers, type Program, programsOf } from './programs.ts'

// Every snippet of the documentation is compiled as it stands there and run: it must print what its comments
// say, and a server must serve until its limit.

const programs = pages()
  .filter(({ path }) => /^(README\.md|packages\/[^/]+\/README\.md|docs\/[^/]+\.md)$/.test(path))
  .flatMap(programsOf)

const fileOf = (program: Program) => program.name.replace(/\W+/g, '-')

let server: RedisServer
let redis: Redis
let folder: string
let complaints: string
beforeAll(async () => {
  server = await startRedis()
  redis = new Redis(server.port)
  // Where the packages of the workspace are found, and Git looks at nothing.
  const cache = join(ROOT, 'node_modules/.cache')
  await mkdir(cache, { recursive: true })
  folder = await mkdtemp(join(cache, 'slidegate-docs-'))
  complaints = await compile()
})
afterAll(async () => {
  await redis.quit()
  await server.stop()
  await rm(folder, { recursive: true, force: true })
})

/** Compiles all of them at once; answers what the compiler has to say. */
async function compile(): Promise<string> {
  const files = await Promise.all(
    programs.map(async (program) => {
      const file = `${fileOf(program)}.${program.extension}`
      await writeFile(join(folder, file), onServers(program, server.url).code)
      return file
    }),
  )
  const compilerOptions = {
    ...{ rootDir: '.', outDir: 'out', allowJs: true, checkJs: true },
    ...{ declaration: false, isolatedDeclarations: false, sourceMap: false, noUnusedLocals: false },
  }
  const config = { extends: join(ROOT, 'tsconfig.base.json'), compilerOptions, files }
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config))
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [tsc, '-p', folder]).catch((e) => e)
  return `${stdout}${stderr}`
}

/** Runs a compiled snippet in a process of its own. */
function run(program: Program, port = 0) {
  const file = join(folder, 'out', `${fileOf(program)}.mjs`)
  const child = spawn(process.execPath, [file], { env: { ...process.env, PORT: `${port}` } })
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

it('the compiler has nothing to say', () => {
  expect(complaints).toBe('')
})

describe('prints what it says', () => {
  it.each(programs.filter((program) => !isServer(program)))('$name', async (program) => {
    await redis.flushall()
    const { ended, output } = run(program)
    const [code] = await ended
    expect({ code, output: output.text }).toEqual({ code: 0, output: expectedOutput(program) })
  })
})

describe('serves until its limit, then answers with 429', () => {
  it.each(programs.filter(isServer))('$name', async (program) => {
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
    expect(statuses.length).toBeGreaterThan(1)
    expect(statuses.at(-1)).toBe(429)
  })
})
