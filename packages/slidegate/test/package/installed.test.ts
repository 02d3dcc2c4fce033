// tier: system
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { copyFile, readFile, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { ownEnvironment } from '../../../../scripts/own-environment.js'
import { ROOT } from '../docs/markdown.ts'
import {
  expectedOutput,
  isServer,
  needsRedis,
  onServers,
  type Program,
  programsOf,
} from '../docs/programs.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/until.ts'
import { useRedis } from '../support/use-redis.ts'
import { installNodes, NODES, type NodeVersion } from './nodes.ts'
import { emptyFolder, importsOf, manifestOf, npm, pack, type Ran } from './npm.ts'

// Installs both packages from their tarballs into empty projects outside this repository, like a user.

/** The packages that a project with all entry points installs. These tests use the same versions. */
const PEERS = [
  ...['@nestjs/common', '@nestjs/core', 'reflect-metadata', 'rxjs'],
  ...['@opentelemetry/api', '@types/express', '@types/koa', '@types/node', '@types/ws'],
  ...[
    'express',
    'fastify',
    'hono',
    'ioredis',
    'iovalkey',
    'koa',
    'redis',
    'socket.io',
    'temporal-polyfill',
    'undici',
    'ws',
  ],
]

/** This repository's compiler and the oldest supported one. */
const COMPILERS = { typescript: readVersion('typescript'), 'typescript-oldest': 'npm:typescript@5.9.3' }

const RESOLUTIONS = {
  nodenext: { module: 'nodenext', files: ['every.mts', 'every.cts'] },
  bundler: { module: 'esnext', files: ['every.mts'] },
} as const

/** The entry points that import nothing from Node according to docs/edge.md. */
const EDGE = ['slidegate', 'http', 'fetch', 'hono', 'outbound', 'client']

/** A store wrapper as a user would write it. All of its types are exported. */
const WRAPPER = `import { type Call, failurePolicy, type Op, type Outcome, type Store } from 'slidegate'
export function told(store: Store, tell: (op: Op, outcome: Outcome) => void): Store {
  return {
    failurePolicy,
    apply(ops: readonly Op[], call: Call) {
      store.apply(ops, {
        get isSettled() { return call.isSettled },
        resolve(outcomes, position) {
          ops.forEach((op, i) => tell(op, outcomes[i]))
          call.resolve(outcomes, position)
        },
        reject: (error) => call.reject(error),
      })
    },
    close: () => store.close(),
  }
}
`

/** The oldest and the newest Node. */
const TESTED = [NODES[0], NODES.at(-1)!]

const PAGES = ['README.md', 'packages/slidegate/README.md']
const programs = PAGES.map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }))
  .flatMap(programsOf)
  .filter((program) => program.extension === 'mts')
const fileOf = (program: Program) => program.name.replace(/\W+/g, '-')

const manifest = await manifestOf('slidegate')
const imports = importsOf(manifest)
const run = promisify(execFile)
const { server, redis } = await useRedis()

let nodeOf: (version: NodeVersion) => string
/** A project with only the library, and npm's output. */
let bare: string
let said: Ran
/** A project with the library, its peers and the service. */
let whole: string

beforeAll(async () => {
  const folder = await emptyFolder()
  const packed = [pack('slidegate', folder), pack('server', folder), installNodes(TESTED)] as const
  const [library, service, programOf] = await Promise.all(packed)
  nodeOf = programOf
  const dependencies = { slidegate: `file:${library.tarball}` }
  bare = await project(dependencies)
  const peers = Object.fromEntries(PEERS.map((name) => [name, readVersion(name)]))
  whole = await project({
    ...dependencies,
    ...{ 'slidegate-server': `file:${service.tarball}` },
    ...peers,
    ...COMPILERS,
  })
  for (const program of programs) {
    await writeFile(join(whole, `${fileOf(program)}.mts`), onServers(program, server.url).code)
  }
  const oldest = nodeOf('20.19.0')
  const installed = [
    npm(bare, ['install', '--engine-strict'], oldest),
    npm(whole, ['install'], oldest),
  ] as const
  said = (await Promise.all(installed))[0]
  // A registry may be slow.
}, 900_000)

async function project(dependencies: Readonly<Record<string, string>>): Promise<string> {
  const folder = await emptyFolder()
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies }))
  const module = (each: string, i: number) => `import * as import${i} from '${each}'; void import${i}\n`
  await writeFile(join(folder, 'every.mts'), imports.map(module).join(''))
  const common = (each: string, i: number) => `import import${i} = require('${each}'); void import${i}\n`
  await writeFile(join(folder, 'every.cts'), imports.map(common).join(''))
  await writeFile(join(folder, 'wrapper.mts'), WRAPPER)
  const edge = EDGE.map((each) => (each === 'slidegate' ? each : `slidegate/${each}`))
  await writeFile(join(folder, 'edge.mts'), edge.map(module).join(''))
  await writeFile(join(folder, 'esm.mjs'), tellOf('await import(name)'))
  await writeFile(join(folder, 'cjs.cjs'), `(async () => {${tellOf('require(name)')}})()`)
  return folder
}

function readVersion(name: string): string {
  for (const folder of [
    'packages/slidegate/node_modules',
    'node_modules',
    'packages/slidegate/test/node_modules',
  ]) {
    try {
      return JSON.parse(readFileSync(join(ROOT, folder, name, 'package.json'), 'utf8')).version
    } catch {}
  }
  throw new Error(`${name} is not installed`)
}

/** Returns a program that loads each entry point and prints its exports or the error. */
function tellOf(load: string): string {
  return `const told = {}
for (const name of process.argv.slice(2)) {
  try { told[name] = Object.keys(${load}).filter((each) => each !== 'module.exports').sort() }
  catch (error) { told[name] = error.code + ' ' + error.message }
}
console.log(JSON.stringify(told))`
}

async function load(
  version: NodeVersion,
  folder: string,
  file: string,
): Promise<Record<string, string[] | string>> {
  const { stdout } = await run(nodeOf(version), [join(folder, file), ...imports], { cwd: folder })
  return JSON.parse(stdout)
}

it('the quick start is among the tested programs', () => {
  const quick = programs.filter(({ page }) => page === 'README.md')
  expect(quick.filter((program) => !needsRedis(program) && !isServer(program)).length).toBeGreaterThan(0)
  expect(quick.filter(needsRedis).length).toBeGreaterThan(0)
})

describe('npm install slidegate', () => {
  it('installs exactly the packages in docs/dependencies.md', async () => {
    const { stdout } = await npm(bare, ['ls', '--all', '--parseable'])
    const installed = stdout
      .trim()
      .split('\n')
      .slice(1)
      .map((path) => path.split('/node_modules/').at(-1)!)
    const page = await readFile(join(ROOT, 'docs/dependencies.md'), 'utf8')
    const table = page.split('\n## The library\n')[1]!.split('\n## ')[0]!
    const told = Array.from(table.matchAll(/^\| `([^`]+)` \|/gm), ([, name]) => name!)
    expect(installed.sort()).toEqual([...told, 'slidegate'].sort())
  })

  it('prints no warnings', () => {
    // Ignores warnings about this machine's npm settings.
    const warnings = said.stderr
      .split('\n')
      .filter((line) => /warn/i.test(line) && !/Unknown \w+ config/.test(line))
    expect(warnings).toEqual([])
  })
})

it('slidegate/redis can be bundled if no Redis client is installed', async () => {
  const contents = "import { redisStore } from 'slidegate/redis'; console.log(typeof redisStore)"
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: bare },
    ...{ bundle: true, write: false, platform: 'node', format: 'esm', logLevel: 'silent' },
  })
  const file = join(bare, 'bundled.mjs')
  await writeFile(file, outputFiles[0]!.text)
  expect((await run(process.execPath, [file], { cwd: bare })).stdout).toBe('function\n')
})

describe.each(TESTED)('on Node %s', (version) => {
  it('the installed version is correct', async () => {
    const { stdout } = await run(nodeOf(version), ['--version'])
    expect(stdout.trim()).toBe(`v${version}`)
  })

  it('each entry point loads with import and require, with the same exports', async () => {
    const told = await load(version, whole, 'esm.mjs')
    expect(Object.keys(told)).toEqual(imports)
    for (const [name, exported] of Object.entries(told)) expect(exported, name).toEqual([...exported].sort())
    expect(
      Object.values(told).filter((exported) => typeof exported === 'string' || exported.length === 0),
    ).toEqual([])
    expect(await load(version, whole, 'cjs.cjs')).toEqual(told)
  })

  it('entry points need no peer dependency except their own', async () => {
    const [esm, cjs] = await Promise.all([load(version, bare, 'esm.mjs'), load(version, bare, 'cjs.cjs')])
    for (const told of [esm, cjs]) {
      const failed = Object.entries(told).filter(([, exported]) => typeof exported === 'string')
      expect(failed).toEqual([
        ['slidegate/calendar', expect.stringContaining("'temporal-polyfill'")],
        ['slidegate/opentelemetry', expect.stringContaining("'@opentelemetry/api'")],
        ['slidegate/nest', expect.stringContaining("'@nestjs/common'")],
      ])
    }
  })

  it.each(programs.filter((each) => !needsRedis(each) && !isServer(each)))(
    '$name prints the documented output',
    async (program) => {
      expect(await printed(program, version)).toBe(expectedOutput(program))
    },
  )

  it.each(programs.filter(needsRedis))(
    '$name prints the documented output with a real server',
    async (program) => {
      await redis.flushall()
      expect(await printed(program, version)).toBe(expectedOutput(program))
    },
  )

  it.each(programs.filter(isServer))(
    '$name serves up to its limit, then responds with 429',
    async (program) => {
      const port = await freePort()
      const env = { ...process.env, PORT: `${port}` }
      const child = spawn(nodeOf(version), [await built(program)], { cwd: whole, env, stdio: 'inherit' })
      onTestFinished(() => void child.kill('SIGKILL'))
      const ask = async () => (await fetch(`http://127.0.0.1:${port}/`)).status
      const statuses = [await until('a server', ask)]
      while (statuses.at(-1) === 200 && statuses.length < 1000) statuses.push(await ask())
      expect(statuses).toEqual([...Array(100).fill(200), 429])
    },
  )

  it('the service starts by its command, responds, and serves the dashboard', async () => {
    const config = join(whole, 'slidegate.yaml')
    await copyFile(join(whole, 'node_modules/slidegate-server/examples/slidegate.yaml'), config)
    const command = join(whole, 'node_modules/.bin/slidegate')
    const { version: own } = await manifestOf('server')
    expect((await run(nodeOf(version), [command, '--version'])).stdout.trim()).toBe(own)

    const words = [command, 'serve', '--config', config, '--http', '127.0.0.1:0']
    const child = spawn(nodeOf(version), words, {
      env: { ...process.env, REDIS_URL: '' },
      stdio: ['ignore', 'pipe', 2],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    const { http: url } = await listening(child.stdout!)
    expect(await consume(url)).toMatchObject({ allowed: true, remaining: 9 })
    const page = await (await fetch(`${url}/`)).text()
    const [, script] = /<script [^>]*src="\.\/([^"]+)"/.exec(page)!
    const { status, headers: of } = await fetch(`${url}/${script}`)
    expect([status, of.get('content-type')]).toEqual([200, expect.stringContaining('javascript')])

    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
  })

  it('npx slidegate-server starts the service without a configuration and prints its address', async () => {
    const port = await freePort()
    const PATH = `${dirname(nodeOf(version))}${delimiter}${process.env.PATH}`
    const npx = spawn('npx', ['slidegate-server', '--http', `127.0.0.1:${port}`], {
      cwd: whole,
      env: { ...ownEnvironment(), PATH, REDIS_URL: '' },
      stdio: ['ignore', 'pipe', 'pipe'],
      // Runs in its own process group, since npx starts the service as a child and leaves it running if npx is killed.
      detached: true,
    })
    onTestFinished(() => endGroup(npx.pid!))
    let stderr = ''
    npx.stderr!.setEncoding('utf8').on('data', (text) => (stderr += text))
    const ended = once(npx, 'exit')
    const { http, pid } = await listening(npx.stdout!)
    expect(http).toBe(`http://127.0.0.1:${port}`)
    expect(await consume(http)).toMatchObject({ allowed: true, remaining: 9 })
    await expect.poll(() => stderr).toContain(`Open ${http}/?token=`)
    process.kill(pid, 'SIGTERM')
    expect(await ended).toEqual([0, null])
  })
})

async function consume(url: string): Promise<unknown> {
  const body = JSON.stringify({ limiter: 'api', key: 'user:42' })
  const headers = { 'content-type': 'application/json' }
  return (await fetch(`${url}/v1/consume`, { method: 'POST', headers, body })).json()
}

function endGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It has already ended.
  }
}

/** Returns the log line of a service that has started to listen. */
async function listening(log: NodeJS.ReadableStream): Promise<{ http: string; pid: number }> {
  for await (const line of createInterface(log)) {
    const logged = JSON.parse(line)
    if (logged.msg === 'slidegate is listening') return logged
  }
  throw new Error('the service ended before it listened')
}

/** Compiles a snippet in the project with all packages. */
async function built(program: Program): Promise<string> {
  await compile('typescript', 'nodenext')
  return join(whole, 'out/typescript.nodenext', `${fileOf(program)}.mjs`)
}

async function printed(program: Program, version: NodeVersion): Promise<string> {
  const { stdout, stderr } = await run(nodeOf(version), [await built(program)], { cwd: whole })
  return stdout + stderr
}

const compiled = new Map<string, Promise<string[]>>()

/** Compiles all entry points and snippets with strict options. Returns errors, except those in third-party code. */
function compile(
  compiler: keyof typeof COMPILERS,
  moduleResolution: keyof typeof RESOLUTIONS,
): Promise<string[]> {
  const name = `${compiler}.${moduleResolution}`
  const { files } = RESOLUTIONS[moduleResolution]
  const snippets = programs.map((program) => `${fileOf(program)}.mts`)
  const all = [...files, 'wrapper.mts', ...snippets]
  const said = compiled.get(name) ?? compileAnew(compiler, moduleResolution, name, all)
  compiled.set(name, said)
  return said
}

async function compileAnew(
  compiler: string,
  moduleResolution: keyof typeof RESOLUTIONS,
  name: string,
  files: readonly string[],
  more: object = {},
): Promise<string[]> {
  const { module } = RESOLUTIONS[moduleResolution]
  const compilerOptions = {
    ...{ moduleResolution, module, target: 'es2022', types: ['node'], rootDir: '.', outDir: `out/${name}` },
    ...{ strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false },
    ...more,
  }
  const config = join(whole, `tsconfig.${name}.json`)
  await writeFile(config, JSON.stringify({ compilerOptions, files }))
  const tsc = join(whole, 'node_modules', compiler, 'bin/tsc')
  const { stdout } = await run(process.execPath, [tsc, '-p', config, '--pretty', 'false'], {
    cwd: whole,
  }).catch((error) => {
    // Without output, the compiler itself failed.
    if (error.stdout === '') throw error
    return error
  })
  return stdout
    .split('\n')
    .filter((line: string) => line !== '' && !/^node_modules\/(?!slidegate)/.test(line))
}

/** One module resolution is enough to show that the oldest compiler reads the same types. */
const COMPILED = [
  ['typescript', 'nodenext'],
  ['typescript', 'bundler'],
  ['typescript-oldest', 'nodenext'],
] as const

it.each(COMPILED)('%s resolves all types by moduleResolution %s', async (compiler, moduleResolution) => {
  expect(await compile(compiler, moduleResolution)).toEqual([])
})

it("entry points that don't need Node compile without Node's types", async () => {
  const web = { types: [], lib: ['esnext', 'dom'] }
  expect(await compileAnew('typescript', 'bundler', 'typescript.edge', ['edge.mts'], web)).toEqual([])
})
