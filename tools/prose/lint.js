// Lints the prose of the repository. See README.md.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { PATTERNS } from './patterns.js'
import { changedLines } from './src/changed-lines.js'
import { files } from './src/files.js'
import { lintAll } from './src/findings.js'
import { compare, countsOf, recordOf } from './src/ratchet.js'
import { counted, lineOf, risesOf } from './src/report.js'

const RECORD = join(import.meta.dirname, 'findings.json')
const WRITE = 'npm run lint:prose -- --write'
const USAGE = [
  'Usage: node tools/prose/lint.js [--write | --list [rule] [path]]',
  '',
  '  (no option)            compares the number of findings of each rule with findings.json',
  '  --write                records lower numbers, and those of new rules; never raises one',
  '  --list [rule] [path]   prints findings, of one rule or below a path',
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
    options: { write: { type: 'boolean' }, list: { type: 'boolean' }, help: { type: 'boolean' } },
    allowPositionals: true,
  })
  if (values.help) {
    console.log(USAGE)
    return 0
  }
  if (values.write && values.list) throw new Error('--write and --list exclude each other')
  if (!values.list && positionals.length > 0) throw new Error(`Unknown argument "${positionals[0]}"`)
  return values.list ? list(positionals) : check(values.write ?? false)
}

/** @param {string[]} words a rule, a path or both @returns {number} */
function list(words) {
  const rule = RULES.find((id) => id === words[0])
  const [path, ...more] = rule ? words.slice(1) : words
  if (more.length > 0)
    throw new Error(rule ? `Unexpected argument "${more[0]}"` : `Unknown rule "${path}". ${EXPECTED}`)
  const prefix = path?.replace(/^\.\//, '') ?? ''
  if (!files().some((each) => each.startsWith(prefix)))
    throw new Error(`Unknown rule or path "${path}". ${EXPECTED}`)
  const { findings, unreadable } = lintAll(prefix)
  const listed = findings.filter((finding) => !rule || finding.rule === rule)
  console.log([...listed.map(lineOf), '', counted(listed.length, 'finding')].join('\n'))
  return reportUnreadable(unreadable)
}

/** @param {boolean} isWriting @returns {number} */
function check(isWriting) {
  const { findings, unreadable } = lintAll()
  const counts = countsOf(RULES, findings)
  const { risen, fallen, added, removed } = compare(recorded(), counts)
  if (risen.length > 0) {
    console.error(risesOf(risen, findings, changedLines()))
    console.error('\nWrite these sentences in plain English: no count may rise.')
    return 1
  }
  if (unreadable.length > 0) return reportUnreadable(unreadable)
  if (!isWriting && added.length + removed.length > 0) {
    console.error(
      `findings.json and patterns.js have different rules (${[...added, ...removed].join(', ')}). Run ${WRITE}.`,
    )
    return 1
  }
  for (const { rule, before, now } of fallen) console.log(`${rule}: ${before} → ${now}`)
  if (!isWriting && fallen.length > 0 && process.env.CI) {
    console.error(`Fewer findings than recorded. Run ${WRITE} and commit tools/prose/findings.json.`)
    return 1
  }
  if (fallen.length + added.length + removed.length > 0) {
    writeFileSync(RECORD, recordOf(counts))
    console.log('Wrote the new numbers to tools/prose/findings.json: commit it.')
  }
  console.log(`${counted(findings.length, 'finding')}, none of them new`)
  return 0
}

/** @returns {Record<string, number>} the recorded counts; none before the first `--write` */
function recorded() {
  if (!existsSync(RECORD)) return {}
  try {
    return JSON.parse(readFileSync(RECORD, 'utf8')).rules
  } catch (error) {
    throw new Error(
      `tools/prose/findings.json can't be read: ${error instanceof Error ? error.message : error}`,
    )
  }
}

/** @param {string[]} unreadable @returns {number} */
function reportUnreadable(unreadable) {
  if (unreadable.length === 0) return 0
  console.error(`Not linted, because of syntax errors:\n${unreadable.join('\n')}`)
  return 1
}
