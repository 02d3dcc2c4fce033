// tier: system
import { execFile } from 'node:child_process'
import { chmod, cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { validateWorkflow } from '@action-validator/core'
import { beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { ROOT } from '../docs/markdown.ts'
import { NODES } from './nodes.ts'
import { emptyFolder } from './npm.ts'

// Tests how a version is released. Runs those scripts of the CI workflows that don't need the CI host.

const PACKAGES = ['slidegate', 'server']
const PRIVATE = ['packages/replay', 'packages/dashboard']

interface Workflow {
  readonly jobs: Readonly<
    Record<
      string,
      {
        readonly permissions?: object
        readonly strategy?: { readonly matrix: Readonly<Record<string, readonly (string | number)[]>> }
        readonly steps: readonly {
          readonly name?: string
          readonly uses?: string
          readonly run?: string
          readonly with?: Readonly<Record<string, unknown>>
        }[]
      }
    >
  >
}

async function workflow(name: string): Promise<{ text: string; jobs: Workflow['jobs'] }> {
  const text = await readFile(join(ROOT, '.github/workflows', `${name}.yml`), 'utf8')
  return { text, ...(parse(text) as Workflow) }
}

const ci = await workflow('ci')
const release = await workflow('release')
const run = promisify(execFile)

/** Copies the files that contain versions to a new folder. */
async function manifests(): Promise<string> {
  const folder = await emptyFolder()
  const files = [
    ...['package.json', 'package-lock.json', '.npmrc', '.changeset/config.json'],
    ...PACKAGES.flatMap((name) => [`packages/${name}/package.json`, `packages/${name}/CHANGELOG.md`]),
    ...PRIVATE.map((name) => `${name}/package.json`),
  ]
  for (const file of files) {
    await mkdir(dirname(join(folder, file)), { recursive: true })
    await cp(join(ROOT, file), join(folder, file))
  }
  return folder
}

const manifestIn = async (folder: string, path: string) =>
  JSON.parse(await readFile(join(folder, path, 'package.json'), 'utf8'))

describe('a changeset', () => {
  let folder: string
  let was: string
  let is: string
  beforeAll(async () => {
    folder = await manifests()
    was = (await manifestIn(folder, 'packages/slidegate')).version
    const words = '---\n"slidegate": minor\n---\n\nBreaking: `consume` is called `take`.\n'
    await writeFile(join(folder, '.changeset/short-words.md'), words)
    const changeset = join(ROOT, 'tools/release/node_modules/@changesets/cli/bin.js')
    await run(process.execPath, [changeset, 'version'], { cwd: folder })
    is = (await manifestIn(folder, 'packages/slidegate')).version
  })

  it('raises the version of both packages and of their dependents', async () => {
    const [major, minor] = was.split('.').map(Number)
    expect(is).toBe(`${major}.${minor! + 1}.0`)
    expect(await manifestIn(folder, 'packages/server')).toMatchObject({
      version: is,
      dependencies: { slidegate: `^${is}` },
    })
    for (const path of PRIVATE) {
      const { dependencies, devDependencies } = await manifestIn(folder, path)
      expect([`^${is}`, undefined], path).toContain({ ...devDependencies, ...dependencies }.slidegate)
    }
  })

  it('appears at the top of the changelogs', async () => {
    const [library, service] = await Promise.all(
      PACKAGES.map((name) => readFile(join(folder, 'packages', name, 'CHANGELOG.md'), 'utf8')),
    )
    expect(library).toMatch(
      `# slidegate\n\n## ${is}\n\n### Minor Changes\n\n- Breaking: \`consume\` is called \`take\`.\n\n## ${was}\n`,
    )
    expect(service!.split(`\n## ${was}\n`)[0]).toContain(`\n## ${is}\n`)
  })
})

describe('the workflows', () => {
  it('match the schema of their host', () => {
    expect([ci, release].flatMap(({ text }) => validateWorkflow(text).errors)).toEqual([])
    expect(validateWorkflow(ci.text.replace('runs-on', 'runs-at')).errors).not.toEqual([])
  })

  it('name the major version of each action', () => {
    const steps = [ci, release].flatMap(({ jobs }) => Object.values(jobs)).flatMap((job) => job.steps)
    const uses = steps.flatMap((step) => step.uses ?? [])
    expect(uses.filter((each) => !/^actions\/[\w-]+@v\d+$/.test(each))).toEqual([])
  })

  it('run the checks on every supported Node version', () => {
    const { all, node } = ci.jobs
    const setup = all!.steps.find(({ uses }) => uses?.startsWith('actions/setup-node@'))
    const versions = [setup?.with?.['node-version'], ...node!.strategy!.matrix.node!]
    expect(versions).toEqual(NODES.map((version) => Number.parseInt(version, 10)))
  })

  it('publish only after all of CI has passed, in a separate job', () => {
    const { pack, publish } = release.jobs
    expect(pack!.steps.map((step) => step.run)).toContain('.ci/run')
    expect(publish).toMatchObject({ needs: 'pack', permissions: { 'id-token': 'write' } })
    expect(pack!.permissions).toBeUndefined()
    const actions = publish!.steps
      .map((step) => step.uses?.split('@')[0])
      .filter((each) => each !== undefined)
    expect(actions).toEqual(['actions/setup-node', 'actions/download-artifact'])
  })
})

/** Runs a step of the release workflow like its host. */
async function step(name: string, cwd: string, env: NodeJS.ProcessEnv): Promise<string> {
  const steps = Object.values(release.jobs).flatMap((job) => job.steps)
  const script = steps.find((each) => each.name === name)!.run!
  const { stdout } = await run('bash', ['-e', '-c', script], { cwd, env: { ...process.env, ...env } })
  return stdout
}

describe('a release', () => {
  const from = { GITHUB_SERVER_URL: 'https://example.com', GITHUB_REPOSITORY: 'somebody/slidegate' }
  let folder: string
  let version: string
  beforeAll(async () => {
    folder = await manifests()
    version = (await manifestIn(folder, 'packages/slidegate')).version
  })

  it("fails if the tag doesn't match its version", async () => {
    const is = 'Check that the tag matches both versions'
    await step(is, folder, { GITHUB_REF_NAME: `v${version}` })
    await expect(step(is, folder, { GITHUB_REF_NAME: 'v99.0.0' })).rejects.toThrow()
  })

  it('records the source repository in each package', async () => {
    await step('Set the repository of the packages', folder, from)
    await step('Pack', folder, {})
    for (const [name, published] of [
      ['slidegate', 'slidegate'],
      ['server', 'slidegate-server'],
    ] as const) {
      const packed = join(folder, `packed/${published}-${version}.tgz`)
      const { stdout } = await run('tar', ['-xzOf', packed, 'package/package.json'])
      expect(JSON.parse(stdout).repository).toEqual({
        type: 'git',
        url: 'git+https://example.com/somebody/slidegate.git',
        directory: `packages/${name}`,
      })
    }
  })

  it('publishes unpublished packages with provenance, the library before its dependents', async () => {
    // A fake npm that prints its arguments and reports one package as published.
    const bin = join(folder, 'bin')
    await mkdir(bin)
    const words =
      '[ "$1" != view ] || case $2 in "$PUBLISHED"@*) echo 1;; esac; [ "$1" != publish ] || echo "$@"\n'
    await writeFile(join(bin, 'npm'), `#!/bin/sh\n${words}`)
    await chmod(join(bin, 'npm'), 0o755)
    const told = (published: string) =>
      step('Publish unpublished packages', folder, {
        ...{ PATH: `${bin}${delimiter}${process.env.PATH}`, PUBLISHED: published },
        ...{ GITHUB_REF_NAME: `v${version}`, NPM_TOKEN: '' },
      })
    const line = (name: string) => `publish ./packed/${name}-${version}.tgz --provenance --access public`
    expect(await told('none')).toBe(`${line('slidegate')}\n${line('slidegate-server')}\n`)
    expect(await told('slidegate')).toBe(`slidegate ${version} is published\n${line('slidegate-server')}\n`)
  })
})
