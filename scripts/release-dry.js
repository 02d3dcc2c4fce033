// Rehearses a release without publishing it. Runs the workflow's steps, installs the packed packages, and runs the Dockerfile
// without Docker. Prints each check with its result. Fails if a check fails.

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
  'the login, the upload, and the provenance that the registry verifies',
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

/** Returns the first step with this command, its job, and its index. @param {string} command */
function stepWith(command) {
  for (const job of jobs) {
    const index = job.steps.findIndex(({ run }) => run?.includes(command))
    if (index >= 0) return { job, index, script: job.steps[index]?.run ?? '' }
  }
  throw new Error(`No step of .github/workflows/release.yml runs "${command}"`)
}

/** @param {(string | false | undefined)[]} problems */
function report(problems) {
  const found = problems.filter(Boolean)
  if (found.length > 0) throw new Error(found.join('\n'))
}

/** Runs a check and prints its result, with the text that `body` returns. Resolves to whether it passed.
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
  const range = packages[1]?.manifest.dependencies?.slidegate
  report([
    range !== `^${version}` && `slidegate-server needs slidegate ${range}; it should be ^${version}`,
    ...packages.flatMap(({ name, folder, manifest }) => [
      manifest.version !== version &&
        `${name} is ${manifest.version}; it should be ${version}, like slidegate`,
      locked[folder]?.version !== version &&
        `package-lock.json has ${name} ${locked[folder]?.version}; it should have ${version}. Run: npm run bump`,
      !read(`${folder}/CHANGELOG.md`).startsWith(`# ${name}\n\n## ${version}\n`) &&
        `${folder}/CHANGELOG.md should begin with version ${version}. Run: npm run bump`,
    ]),
  ])
  const changesets = readdirSync(join(ROOT, '.changeset')).filter((file) => file.endsWith('.md'))
  return `${version}, ${changesets.length} changesets for the next version`
})

await check('both manifests can be published', () => {
  report(
    packages.flatMap(({ name, folder, manifest }) => [
      manifest.private && `${name} should not be private`,
      manifest.license !== 'MIT' && `${name} has the license ${manifest.license}; it should be MIT`,
      !existsSync(join(ROOT, folder, 'LICENSE')) && `${folder}/LICENSE is missing`,
      !manifest.files?.length && `${name} has no "files"; they should list the published files`,
      !manifest.engines?.node && `${name} has no "engines.node"; it should be the oldest Node in CI`,
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
    (named.job !== packed.job || named.index > packed.index) &&
      'the workflow should set "repository" before npm pack',
  ])
})

const isBuilt = await check('npm run build', async () => void (await run('npm run build', ROOT)))

// A copy, because the workflow changes the manifests.
const checkout = join(scratch, 'checkout')
const isPacked =
  isBuilt &&
  (await check('the workflow packs both packages, with the dashboard and their repository', async () => {
    for (const path of ['package.json', 'package-lock.json', '.npmrc', ...Object.values(PACKAGES)]) {
      const filter = (/** @type {string} */ from) => basename(from) !== 'node_modules'
      cpSync(join(ROOT, path), join(checkout, path), { recursive: true, filter })
    }
    const from = { GITHUB_SERVER_URL: 'https://github.com', GITHUB_REPOSITORY: 'owner/slidegate' }
    await run(stepWith('repository.url=').script, checkout, from)
    await run(stepWith('npm pack').script, checkout)
    for (const tarball of tarballs) {
      const { repository } = JSON.parse(await run(`tar -xzOf ${tarball} package/package.json`, checkout))
      report([!repository?.url?.includes('owner/slidegate') && `${tarball} should have a repository`])
    }
    const files = await run(`tar -tzf ${tarballs[1]}`, checkout)
    report([!files.includes('package/page/index.html') && `${tarballs[1]} should have page/index.html`])
  }))

if (isPacked) {
  await check('the workflow publishes both packages (npm publish --dry-run)', async () => {
    const env = { npm_config_dry_run: 'true', NPM_TOKEN: '', GITHUB_REF_NAME: `v${version}` }
    const printed = await run(stepWith('npm publish').script, checkout, env)
    report([
      printed.split('(dry-run)').length <= packages.length &&
        `npm should publish twice, but printed: ${printed}`,
      printed.includes('is published') &&
        `${version} is already published. For a new version, run: npm run bump`,
      printed.includes('auto-corrected') &&
        `npm corrected a manifest. To keep that, run: npm pkg fix\n${printed}`,
    ])
  })

  const folder = join(scratch, 'installed')
  mkdirSync(folder)
  const isInstalled = await check(
    'both packages install into an empty folder, and slidegate decides',
    async () => {
      const paths = tarballs.map((path) => `'${join(checkout, path)}'`).join(' ')
      await run(`npm install --prefer-offline --no-audit --no-fund ${paths}`, folder)
      const limits = "[slidingWindow({ limit: 1, window: '1m' })]"
      const code = `import { createLimiter, slidingWindow } from 'slidegate'
      const limiter = createLimiter({ limits: ${limits} })
      console.log((await limiter.consume('a')).allowed, (await limiter.consume('a')).allowed)`
      const printed = await run(`node --input-type=module -e "${code}"`, folder)
      report([!printed.includes('true false') && `a limit of 1 should print "true false", got: ${printed}`])
    },
  )
  if (isInstalled) {
    await check('npx slidegate-server starts, prints its address, decides and stops', async () => {
      const startMs = performance.now()
      const service = start('npx slidegate-server --http 127.0.0.1:0', folder)
      const [url, seconds] = await whileServing(service, async (address) => {
        await decide(address)
        return [address, (performance.now() - startMs) / 1000]
      })
      report([
        seconds > MAX_START_S && `it took ${seconds.toFixed(1)} s; it should take at most ${MAX_START_S} s`,
        !service.output.includes(`Open ${url}/?token=`) && `it should print "Open ${url}/?token=..."`,
      ])
      return `first decision after ${seconds.toFixed(1)} s`
    })
  } else notChecked.unshift('npx slidegate-server, because the packages are not installed')
} else notChecked.unshift('publishing, installing and starting, because nothing was packed')

await check('the Dockerfile builds, and its service passes the HEALTHCHECK, decides and stops', async () => {
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
    const address = `http://127.0.0.1:${port}/`
    report([
      !commands.HEALTHCHECK?.includes(address) &&
        `the HEALTHCHECK should request ${address}, where the service listens`,
    ])
    await run(commands.HEALTHCHECK?.replace(address, `${url}/`) ?? '', root)
    report([(await fetch(url)).status !== 200 && 'the image should serve the dashboard at /'])
    await decide(url, { authorization: `Bearer ${secrets.SLIDEGATE_TOKEN}` })
  })
})

for (const each of notChecked) console.log(`not checked: ${each}`)
process.exit() // Kills a service that is still running.
