// Lints the prose of the repository. See README.md.
import { parseArgs } from 'node:util'
import { PATTERNS } from './patterns.js'
import { files } from './src/files.js'
import { lintAll } from './src/findings.js'

const USAGE = [
  'Usage: node tools/prose/lint.js [rule] [path]',
  '',
  'Prints findings, of one rule or below a path. Exits with 1 if there are any.',
].join('\n')
const RULES = PATTERNS.map(({ id }) => id)
const EXPECTED = `Rules are: ${RULES.join(', ')}`

try {
  process.exitCode = run()
} catch (error) {
  console.error(
    `${error instanceof Error ? error.message : error}\nFor help: node tools/prose/lint.js --help`,
  )
  process.exitCode = 2
}

/** @returns {number} the exit code */
function run() {
  const { values, positionals } = parseArgs({
    options: { help: { type: 'boolean' } },
    allowPositionals: true,
  })
  if (values.help) {
    console.log(USAGE)
    return 0
  }
  const rule = RULES.find((id) => id === positionals[0])
  const [path, ...more] = rule ? positionals.slice(1) : positionals
  if (more.length > 0)
    throw new Error(rule ? `Unexpected argument "${more[0]}"` : `Unknown rule "${path}". ${EXPECTED}`)
  const prefix = path?.replace(/^\.\//, '') ?? ''
  if (!files().some((each) => each.startsWith(prefix)))
    throw new Error(`Unknown rule or path "${path}". ${EXPECTED}`)
  const { findings, unreadable } = lintAll(prefix)
  const listed = findings.filter((finding) => !rule || finding.rule === rule)
  for (const { path, line, column, rule, excerpt, instead } of listed)
    console.error(`${path}:${line}:${column}  ${rule}  ${excerpt} → ${instead}`)
  for (const file of unreadable) console.error(`Not linted because of a syntax error: ${file}`)
  console.log(`${listed.length} finding${listed.length === 1 ? '' : 's'}`)
  return listed.length + unreadable.length === 0 ? 0 : 1
}
