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

/** What is installed with a workspace, where it is found from there. */
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

/** The rows of a section's table: what is named in their first column, and the licence in their second. */
function rowsOf(heading: string): [string, string][] {
  const section = page.split(`## ${heading}\n`)[1]!.split('\n## ')[0]!
  return Array.from(section.matchAll(/^\| `([^`]+)` \| ([^|]+) \|/gm), ([, name, licence]) => [
    name!,
    licence!.trim(),
  ])
}

describe('docs/dependencies.md', () => {
  it('names all that the library brings along, with its licence', () => {
    const tree = [...treeOf('packages/slidegate')].map(([name, { license }]) => [name, license ?? 'none'])
    expect(rowsOf('The library').sort()).toEqual(tree.sort())
  })

  it('names what the command line asks for itself', () => {
    const { dependencies } = lock['packages/server']!
    const named = rowsOf('The service and the command line').map(([name]) => name)
    expect(named.sort()).toEqual(
      Object.keys(dependencies!)
        .filter((name) => name !== 'slidegate')
        .sort(),
    )
  })

  it('nothing that either brings along runs anything when it is installed, but what the page tells of', () => {
    const all = ['packages/slidegate', 'packages/server'].flatMap((workspace) => [...treeOf(workspace)])
    const running = all.filter(([, { hasInstallScript }]) => hasInstallScript).map(([name]) => name)
    expect(running).toEqual(['protobufjs'])
  })
})

describe('npm run audit', () => {
  /** The script's exit code and what it says, with a registry that knows these advisories; none for one that cannot tell. */
  async function audit(advisories: object | undefined): Promise<{ code: number; said: string }> {
    const registry = createServer((request, response) => {
      const isAsked = request.url!.endsWith('/advisories/bulk')
      response.statusCode = !isAsked ? 404 : advisories === undefined ? 405 : 200
      request.resume().on('end', () => response.end(isAsked ? JSON.stringify(advisories) : '{}'))
    })
    await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void registry.close())
    const env = {
      ...process.env,
      npm_config_registry: `http://127.0.0.1:${(registry.address() as AddressInfo).port}`,
    }
    return new Promise((resolve) => {
      execFile('node', ['scripts/audit.js'], { cwd: ROOT, env }, (error, stdout, stderr) => {
        resolve({ code: Number(error?.code ?? 0), said: stdout + stderr })
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

  it('fails where a published package brings something vulnerable along', async () => {
    const { code, said } = await audit(advisory('ipaddr.js'))
    expect(said).toMatch(/PUBLISHED: high: ipaddr\.js .*reads wrong, https:/)
    expect(code).toBe(1)
  })

  it('tells what is vulnerable elsewhere', async () => {
    const { code, said } = await audit(advisory('fast-check'))
    expect(said).toMatch(/development only: high: fast-check/)
    expect(code).toBe(0)
  })

  it('passes where there is nothing, and says how much was asked for', async () => {
    const { code, said } = await audit({})
    expect(said).toMatch(/^\d{3,} packages audited, 0 vulnerable/)
    expect(code).toBe(0)
  })

  it('says so where the registry cannot tell', async () => {
    const { code, said } = await audit(undefined)
    expect(said).toMatch(/^NOT AUDITED: 405/)
    expect(code).toBe(0)
  })
})
