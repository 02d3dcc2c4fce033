// Runs `npm audit`. Fails if a dependency of the published packages is vulnerable.
// Only warns if the registry, such as a mirror, has no audit data.

import { spawnSync } from 'node:child_process'

const report = npm('audit')
if (report?.vulnerabilities === undefined) {
  console.warn(`NOT AUDITED: ${report?.message ?? 'npm audit returned no report'}`)
} else {
  const published = namesIn(npm('ls', '--all', '--omit=dev', '-w', 'slidegate', '-w', 'slidegate-server'))
  const found = Object.values(report.vulnerabilities)
  for (const { name, severity, range, via } of found) {
    const titles = via.map((/** @type {any} */ each) =>
      typeof each === 'string' ? each : `${each.title}, ${each.url}`,
    )
    const where = published.has(name) ? 'PUBLISHED' : 'development only'
    console.error(`${where}: ${severity}: ${name} ${range}: ${titles.join('; ')}`)
  }
  console.log(`${report.metadata.dependencies.total} packages audited, ${found.length} vulnerable`)
  if (found.some(({ name }) => published.has(name))) process.exitCode = 1
}

/** @param {...string} words */
function npm(...words) {
  const { stdout } = spawnSync('npm', [...words, '--json'], {
    encoding: 'utf8',
    timeout: 120_000,
    maxBuffer: 2 ** 28,
  })
  try {
    return JSON.parse(stdout)
  } catch {
    return undefined
  }
}

/**
 * @param {{ dependencies?: Record<string, object> }} tree
 * @returns {Set<string>}
 */
function namesIn({ dependencies = {} }) {
  const below = Object.values(dependencies).flatMap((each) => [...namesIn(each)])
  return new Set([...Object.keys(dependencies), ...below])
}
