import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'

const PACKAGE = fileURLToPath(new URL('..', import.meta.url))
const ROOT = join(PACKAGE, '../..')

it.each(['nodenext', 'bundler'])(
  'what is published compiles in the strictest program of a user: %s',
  async (moduleResolution) => {
    const { exports } = JSON.parse(await readFile(join(PACKAGE, 'package.json'), 'utf8'))
    const entries = Object.keys(exports).filter((path) => !path.endsWith('.json'))
    const cache = join(ROOT, 'node_modules/.cache')
    await mkdir(cache, { recursive: true })
    const folder = await mkdtemp(join(cache, 'slidegate-declarations-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const imports = entries.map((path, i) => `export * as m${i} from 'slidegate${path.slice(1)}'\n`)
    await writeFile(join(folder, 'all.mts'), imports.join(''))
    const compilerOptions = {
      ...{ noEmit: true, strict: true, skipLibCheck: false, exactOptionalPropertyTypes: true },
      ...{ target: 'es2023', module: moduleResolution === 'bundler' ? 'esnext' : 'nodenext' },
      ...{ moduleResolution, types: ['node'] },
    }
    const project = join(folder, 'tsconfig.json')
    await writeFile(project, JSON.stringify({ compilerOptions, files: ['all.mts'] }))
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
    const { stdout } = await promisify(execFile)(process.execPath, [tsc, '-p', project, '--listFiles']).catch(
      (failed) => failed,
    )
    const lines: string[] = stdout.split('\n').filter((line: string) => line.includes('slidegate/dist/'))
    // Of other packages' declarations nothing is asked.
    expect(lines.filter((line) => line.includes('error TS'))).toEqual([])
    expect(lines.length).toBeGreaterThan(entries.length)
  },
)
