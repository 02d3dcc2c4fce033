// Rehearses a release without publishing: runs the workflow's own steps, installs what they pack, and runs the Dockerfile's steps
// without Docker. Prints each check with its outcome, and fails if one of them does.

import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { decide, run, start, whileServing } from './release/commands.js'
import { runDockerfile } from './release/dockerfile.js'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PACKAGES = { slidegate: 'packages/slidegate', 'slidegate-server': 'packages/server' }
const MAX_START_S = 15
const notChecked = [
  'the login, publishing itself, and the provenance that the registry verifies',
  '.ci/run, which the workflow runs before it packs',
  "the image's base layers, its user, and its read-only root",
]

const scratch = mkdtempSync(join(tmpdir(), 'slidegate-release-'))
process.once('exit', () => rmSync(scratch, { recursive: true, force: true, maxRetries: 5 }))
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))

/** @param {string} path */
const read = (path) => readFileSync(join(ROOT, path), 'utf8')

/** @typedef {{ version: string, license?: string, files?: string[], engines?: { node?: string }, private?: boolean }} Published */
/** @typedef {Published & { publishConfig?: { access?: string }, dependencies?: Record<string, string> }} Manifest */
const packages = Object.entries(PACKAGES).map(([name, folder]) => {
  return { name, folder, manifest: /** @type {Manifest} */ (JSON.parse(read(`${folder}/package.json`))) }
})
const version = packages[0]?.manifest.version ?? ''
const tarballs = packages.map(({ name }) => `packed/${name}-${version}.tgz`)

/** @type {{ permissions?: Record<string, string>, steps: { run?: string }[] }[]} */
const jobs = Object.values(parse(read('.github/workflows/release.yml')).jobs)

/** The first step that runs this command, its job, and where it is there. @param {string} command */
function stepWith(command) {
  for (const job of jobs) {
    const index = job.steps.findIndex(({ run }) => run?.includes(command))
    if (index >= 0) return { job, index, script: job.steps[index]?.run ?? '' }
  }
  throw new Error(`no step of .github/workflows/release.yml runs "${command}"; one should`)
}

/** @param {(string | false | undefined)[]} problems */
function report(problems) {
  const found = problems.filter(Boolean)
  if (found.length > 0) throw new Error(found.join('\n'))
}

/** Prints the outcome of a check, with what `body` returns. Resolves to whether it passed.
 * @param {string} title @param {() => unknown} body */
async function check(title, body) {
  try {
    const found = await body()
    console.log(`ok      ${title}${typeof found === 'string' ? `: ${found}` : ''}`)
    return true
  } catch (error) {
    const { message } = /** @type {Error} */ (error)
    console.log(`FAILED  ${title}\n${message.trimEnd().replaceAll(/^/gm, '        ')}`)
    process.exitCode = 1
    return false
  }
}

await check('versions, lockfile and changelogs agree', () => {
  const locked = JSON.parse(read('package-lock.json')).packages
  const asked = packages[1]?.manifest.dependencies?.slidegate
  report([
    asked !== `^${version}` && `slidegate-server needs slidegate ${asked}; it should be ^${version}`,
    ...packages.flatMap(({ name, folder, manifest }) => [
      manifest.version !== version && `${name} is ${manifest.version}; it should be ${version}, as slidegate`,
      locked[folder]?.version !== version &&
        `package-lock.json has ${name} ${locked[folder]?.version}; it should have ${version}: npm run bump`,
      !read(`${folder}/CHANGELOG.md`).startsWith(`# ${name}\n\n## ${version}\n`) &&
        `${folder}/CHANGELOG.md should begin with version ${version}: npm run bump`,
    ]),
  ])
  const changesets = readdirSync(join(ROOT, '.changeset')).filter((file) => file.endsWith('.md'))
  return `${version}, with ${changesets.length} changesets left for the next version`
})

await check('both manifests can be published', () => {
  report(
    packages.flatMap(({ name, folder, manifest }) => [
      manifest.private && `${name} should not be private`,
      manifest.license !== 'MIT' && `${name} has the license ${manifest.license}; it should be MIT`,
      !existsSync(join(ROOT, folder, 'LICENSE')) && `${folder}/LICENSE is missing`,
      !manifest.files?.length && `${name} has no "files"; they should name what is published`,
      !manifest.engines?.node && `${name} has no "engines.node"; it should be the oldest Node that CI runs`,
      (manifest.publishConfig?.access ?? 'public') !== 'public' && `${name} should have public access`,
    ]),
  )
})

await check('the workflow publishes with provenance', () => {
  const named = stepWith('repository.url=')
  const packed = stepWith('npm pack')
  const { job, script } = stepWith('npm publish')
  report([
    job.permissions?.['id-token'] !== 'write' && 'the job that publishes should have "id-token: write"',
    !/npm publish .*--provenance/.test(script) && 'npm publish should have --provenance',
    (named.job !== packed.job || named.index > packed.index) && 'it should set "repository" before it packs',
  ])
})

const isBuilt = await check('npm run build', async () => void (await run('npm run build', ROOT)))

// A copy, since the workflow writes into the manifests.
const checkout = join(scratch, 'checkout')
const isPacked =
  isBuilt &&
  (await check('the workflow packs both, with the page and their repository', async () => {
    for (const path of ['package.json', 'package-lock.json', '.npmrc', ...Object.values(PACKAGES)]) {
      const filter = (/** @type {string} */ from) => basename(from) !== 'node_modules'
      cpSync(join(ROOT, path), join(checkout, path), { recursive: true, filter })
    }
    const from = { GITHUB_SERVER_URL: 'https://github.com', GITHUB_REPOSITORY: 'owner/slidegate' }
    await run(stepWith('repository.url=').script, checkout, from)
    await run(stepWith('npm pack').script, checkout)
    for (const tarball of tarballs) {
      const { repository } = JSON.parse(await run(`tar -xzOf ${tarball} package/package.json`, checkout))
      report([!repository?.url?.includes('owner/slidegate') && `${tarball} should name its repository`])
    }
    const files = await run(`tar -tzf ${tarballs[1]}`, checkout)
    report([!files.includes('package/page/index.html') && `${tarballs[1]} should have page/index.html`])
  }))

if (isPacked) {
  await check('the workflow publishes both (npm publish --dry-run)', async () => {
    const env = { npm_config_dry_run: 'true', NPM_TOKEN: '', GITHUB_REF_NAME: `v${version}` }
    const printed = await run(stepWith('npm publish').script, checkout, env)
    report([
      printed.split('(dry-run)').length <= packages.length &&
        `npm should publish twice, but printed ${printed}`,
      printed.includes('is published') && `${version} is published already; the next one needs: npm run bump`,
      printed.includes('auto-corrected') &&
        `npm corrects a manifest; npm pkg fix does it for good\n${printed}`,
    ])
  })

  const folder = join(scratch, 'installed')
  mkdirSync(folder)
  const isInstalled = await check('both install into an empty folder, and slidegate decides', async () => {
    const paths = tarballs.map((path) => `'${join(checkout, path)}'`).join(' ')
    await run(`npm install --prefer-offline --no-audit --no-fund ${paths}`, folder)
    const limits = "[slidingWindow({ limit: 1, window: '1m' })]"
    const code = `import { createLimiter, slidingWindow } from 'slidegate'
      const limiter = createLimiter({ limits: ${limits} })
      console.log((await limiter.consume('a')).allowed, (await limiter.consume('a')).allowed)`
    const printed = await run(`node --input-type=module -e "${code}"`, folder)
    report([!printed.includes('true false') && `a limit of 1 should print "true false", not: ${printed}`])
  })
  if (isInstalled) {
    await check('npx slidegate-server answers, says where it is, and ends', async () => {
      const startMs = performance.now()
      const service = start('npx slidegate-server --http 127.0.0.1:0', folder)
      const [url, seconds] = await whileServing(service, async (address) => {
        await decide(address)
        return [address, (performance.now() - startMs) / 1000]
      })
      report([
        seconds > MAX_START_S && `it took ${seconds.toFixed(1)} s; it should take at most ${MAX_START_S} s`,
        !service.output.includes(`Open ${url}\n`) && `it should print "Open ${url}"`,
      ])
      return `first decision after ${seconds.toFixed(1)} s`
    })
  } else notChecked.unshift('npx slidegate-server, since it is not installed')
} else notChecked.unshift('publishing, installing and starting, since nothing is packed')

await check(
  'the Dockerfile builds, and what it starts passes its HEALTHCHECK, decides and ends',
  async () => {
    const file = join(ROOT, 'deploy/Dockerfile')
    const { root, cwd, env, commands } = await runDockerfile({ file, context: ROOT, folder: scratch, run })
    const config = readFileSync(join(root, 'etc/slidegate/slidegate.yaml'), 'utf8')
    const [, port] = parse(config).listen.http.split(':')
    const secrets = Object.fromEntries(
      Array.from(config.matchAll(/\$\{(\w+)\}/g), ([, name]) => [name, `secret-${name}`]),
    )
    const image = { ...env, ...secrets, SLIDEGATE_HTTP: '127.0.0.1:0' }
    const service = start(`exec ${commands.ENTRYPOINT} ${commands.CMD}`, join(root, cwd), image)
    await whileServing(service, async (url) => {
      const asked = `http://127.0.0.1:${port}/`
      report([
        !commands.HEALTHCHECK?.includes(asked) && `the HEALTHCHECK should ask ${asked}, where it listens`,
      ])
      await run(commands.HEALTHCHECK?.replace(asked, `${url}/`) ?? '', root)
      report([(await fetch(url)).status !== 200 && 'the image should have the live page at /'])
      await decide(url, { authorization: `Bearer ${secrets.SLIDEGATE_TOKEN}` })
    })
  },
)

for (const each of notChecked) console.log(`not checked: ${each}`)
process.exit() // A service that didn't end would keep this process alive. Exiting kills it.
