// tier: system
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ROOT } from './markdown.ts'

interface LockedPackage {
  readonly version?: string
  readonly license?: string
  readonly dependencies?: Record<string, string>
  readonly hasInstallScript?: boolean
}

const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')).packages as Record<
  string,
  LockedPackage
>
const page = readFileSync(join(ROOT, 'docs/dependencies.md'), 'utf8')

/** Returns all packages that are installed with a workspace. */
function treeOf(workspace: string): Map<string, LockedPackage> {
  const found = new Map<string, LockedPackage>()
  const add = (from: string): void => {
    for (const name of Object.keys(lock[from]!.dependencies ?? {})) {
      if (name === 'slidegate' || found.has(name)) continue
      const path = [
        `${from}/node_modules/${name}`,
        `${workspace}/node_modules/${name}`,
        `node_modules/${name}`,
      ]
      const at = path.find((each) => lock[each] !== undefined)!
      found.set(name, lock[at]!)
      add(at)
    }
  }
  add(workspace)
  return found
}

/** Returns name and license from the rows of a section's table. */
function rowsOf(heading: string): [string, string][] {
  const section = page.split(`## ${heading}\n`)[1]!.split('\n## ')[0]!
  return Array.from(section.matchAll(/^\| `([^`]+)` \| ([^|]+) \|/gm), ([, name, license]) => [
    name!,
    license!.trim(),
  ])
}

describe('docs/dependencies.md', () => {
  it('lists all dependencies of the library, with their licenses', () => {
    const tree = [...treeOf('packages/slidegate')].map(([name, { license }]) => [name, license ?? 'none'])
    expect(rowsOf('The library').sort()).toEqual(tree.sort())
  })

  it('lists the direct dependencies of the command line', () => {
    const { dependencies } = lock['packages/server']!
    const named = rowsOf('The service and the command line').map(([name]) => name)
    expect(named.sort()).toEqual(
      Object.keys(dependencies!)
        .filter((name) => name !== 'slidegate')
        .sort(),
    )
  })

  it('names the only dependency with an install script', () => {
    const all = ['packages/slidegate', 'packages/server'].flatMap((workspace) => [...treeOf(workspace)])
    const running = all.filter(([, { hasInstallScript }]) => hasInstallScript).map(([name]) => name)
    expect(running).toEqual(['protobufjs'])
  })
})

describe('npm run audit', () => {
  /** Runs the script with a registry that has these advisories. `undefined` for a registry without audit data. */
  async function audit(advisories: object | undefined): Promise<{ code: number; output: string }> {
    const registry = createServer((request, response) => {
      const isAudit = request.url!.endsWith('/advisories/bulk')
      response.statusCode = !isAudit ? 404 : advisories === undefined ? 405 : 200
      request.resume().on('end', () => response.end(isAudit ? JSON.stringify(advisories) : '{}'))
    })
    await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void registry.close())
    const env = {
      ...process.env,
      npm_config_registry: `http://127.0.0.1:${(registry.address() as AddressInfo).port}`,
    }
    return new Promise((resolve) => {
      execFile('node', ['scripts/audit.js'], { cwd: ROOT, env }, (error, stdout, stderr) => {
        resolve({ code: Number(error?.code ?? 0), output: stdout + stderr })
      })
    })
  }

  function advisory(name: string): object {
    const cvss = { score: 0, vectorString: null }
    const rest = {
      id: 1,
      url: 'https://example.com/1',
      title: 'reads wrong',
      severity: 'high',
      cwe: [],
      cvss,
    }
    return { [name]: [{ ...rest, vulnerable_versions: '*' }] }
  }

  it('fails if a dependency of a published package is vulnerable', async () => {
    const { code, output } = await audit(advisory('ipaddr.js'))
    expect(output).toMatch(/PUBLISHED: high: ipaddr\.js .*reads wrong, https:/)
    expect(code).toBe(1)
  })

  it('reports vulnerable development dependencies, and passes', async () => {
    const { code, output } = await audit(advisory('fast-check'))
    expect(output).toMatch(/development only: high: fast-check/)
    expect(code).toBe(0)
  })

  it('passes without vulnerabilities, and prints the number of packages', async () => {
    const { code, output } = await audit({})
    expect(output).toMatch(/^\d{3,} packages audited, 0 vulnerable/)
    expect(code).toBe(0)
  })

  it('warns if the registry has no audit data', async () => {
    const { code, output } = await audit(undefined)
    expect(output).toMatch(/^NOT AUDITED: 405/)
    expect(code).toBe(0)
  })
})
