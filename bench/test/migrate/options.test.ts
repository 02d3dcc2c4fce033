import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { ROOT } from '../../../packages/slidegate/test/docs/markdown.ts'
import { installedVersion } from '../installed.ts'

// Tests that each page in docs/migrate names the version and all options of the other package.

/** The types whose properties are the options of a package. */
const OPTIONS: Readonly<Record<string, readonly string[]>> = {
  'express-rate-limit': ['Options'],
  'rate-limiter-flexible': [
    ...['IRateLimiterOptions', 'IRateLimiterStoreOptions', 'IRateLimiterClusterOptions'],
    ...['IRateLimiterStoreNoAutoExpiryOptionsAndSchema', 'IRateLimiterMongoOptions'],
    ...['IRateLimiterPostgresOptions', 'IRateLimiterRedisOptions', 'IRateLimiterValkeyOptions'],
    ...['IRateLimiterValkeyGlideOptions', 'IRateLimiterDynamoOptions', 'IRLWrapperBlackAndWhiteOptions'],
    ...['IRLWrapperTimeoutsOptions', 'IRateLimiterQueueOpts'],
  ],
  '@upstash/ratelimit': ['RatelimitConfig', 'MultiRegionRatelimitConfig'],
  '@fastify/rate-limit': ['RateLimitPluginOptions'],
  '@nestjs/throttler': ['ThrottlerOptions', 'ThrottlerModuleOptions', 'ThrottlerAsyncOptions'],
}

describe.each(Object.entries(OPTIONS))('%s', (name, types) => {
  const page = readFile(join(ROOT, 'docs/migrate', `${name.replace(/^@/, '').replace('/', '-')}.md`), 'utf8')

  it('matches the version on the page', async () => {
    expect(await page).toContain(`\nWritten for ${name} ${installedVersion(name)}.`)
  })

  it('defines exactly the options in the first columns of the tables', async () => {
    const named = optionsIn(await page)
    expect(named.length).toBeGreaterThan(10)
    const all = types.map((type) => `import('${name}').${type}`).join(' | ')
    expect(await complaints(all, named)).toBe('')
  })
})

/** The options in the first column of tables with the package's name as their heading. */
function optionsIn(page: string): string[] {
  const tables = page.matchAll(/^\| \S+ \| slidegate \|\n\|.*\n((?:\|.*\n)+)/gm)
  return Array.from(tables, ([, rows]) => rows!.trimEnd().split('\n'))
    .flat()
    .flatMap((row) => Array.from(row.split(' | ')[0]!.matchAll(/`(\w+)`/g), ([, option]) => option!))
}

/** Returns the compiler's errors if the names aren't exactly the type's properties. */
async function complaints(type: string, named: readonly string[]): Promise<string> {
  const cache = join(ROOT, 'bench/node_modules/.cache')
  await mkdir(cache, { recursive: true })
  const folder = await mkdtemp(join(cache, 'slidegate-docs-'))
  try {
    const code = `type KeysOf<T> = T extends readonly unknown[] ? never : T extends unknown ? keyof T : never
type Options = KeysOf<${type}>
type Named = ${named.map((option) => `'${option}'`).join(' | ')}
type None<T extends never> = T
export type NotOnThePage = None<Exclude<Options, Named>>
export type NotInThePackage = None<Exclude<Named, Options>>
`
    await writeFile(join(folder, 'options.ts'), code)
    const config = {
      extends: join(ROOT, 'tsconfig.base.json'),
      compilerOptions: { noEmit: true },
      files: ['options.ts'],
    }
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config))
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
    const { stdout } = await promisify(execFile)(process.execPath, [tsc, '-p', folder]).catch(
      (error) => error,
    )
    return stdout
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
