// Runs the steps of a Dockerfile without Docker. Each stage has a folder as its root.

import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

/**
 * @typedef {object} Stage
 * @property {string} root the folder that replaces `/`
 * @property {string} cwd
 * @property {Record<string, string>} env
 * @property {Record<string, string>} commands ENTRYPOINT, CMD and HEALTHCHECK, for a shell, with their paths within `root`
 */

/** Instructions that have no meaning outside an image. */
const IGNORED = ['ARG', 'USER', 'EXPOSE', 'STOPSIGNAL']

/**
 * Runs a Dockerfile. Resolves to its last stage.
 *
 * @param {{ file: string, context: string, folder: string, run: (script: string, cwd: string, env: Record<string, string>) => Promise<unknown> }} options
 * @returns {Promise<Stage>}
 */
export async function runDockerfile({ file, context, folder, run }) {
  const sent = join(folder, 'context')
  for (const path of filesSent(context)) copy(join(context, path), join(sent, path))
  /** @type {Map<string, Stage>} */
  const stages = new Map()
  /** @type {Stage} */
  let stage = { root: sent, cwd: '/', env: {}, commands: {} }
  for (const [word, rest] of instructionsOf(readFileSync(file, 'utf8'))) {
    const within = (/** @type {string} */ path) =>
      join(stage.root, path.startsWith('/') ? '' : stage.cwd, path)
    if (word === 'FROM') {
      const [from = '', , name = 'last'] = rest.split(' ')
      const base = stages.get(from)
      const root = join(folder, `stage-${stages.size}`)
      if (base) copy(base.root, root)
      stage = { cwd: '/', env: {}, ...structuredClone(base), commands: {}, root }
      stages.set(name, stage)
    } else if (word === 'WORKDIR') {
      stage.cwd = resolve(stage.cwd, rest)
      mkdirSync(within('.'), { recursive: true })
    } else if (word === 'ENV') {
      const [name = '', value = ''] = rest.split('=')
      stage.env[name] = value
    } else if (word === 'COPY') {
      const words = rest.split(/\s+/)
      const from = words[0]?.startsWith('--from=') ? words.shift()?.slice('--from='.length) : undefined
      const source = from === undefined ? sent : stages.get(from)?.root
      if (source === undefined) throw new Error(`COPY ${rest}: no stage named ${from} before it`)
      const to = words.pop() ?? ''
      for (const path of words) {
        const origin = join(source, path)
        if (!existsSync(origin)) throw new Error(`COPY ${rest}: found no ${path} in the ${from ?? 'context'}`)
        const isInto = to.endsWith('/') && statSync(origin).isFile()
        copy(origin, isInto ? join(within(to), basename(path)) : within(to))
      }
    } else if (word === 'RUN') {
      await run(rest, within('.'), stage.env)
    } else if (['ENTRYPOINT', 'CMD', 'HEALTHCHECK'].includes(word)) {
      /** @type {string[]} */
      const words = JSON.parse(rest.slice(rest.indexOf('[')))
      const found = words.map((each) => (each.startsWith('/') ? within(each) : each))
      stage.commands[word] = found.map((each) => `'${each.replaceAll("'", "'\\''")}'`).join(' ')
    } else if (!IGNORED.includes(word)) {
      throw new Error(
        `Unknown instruction ${word} in ${basename(file)}. Add it to scripts/release/dockerfile.js.`,
      )
    }
  }
  return stage
}

/** @param {string} from @param {string} to */
function copy(from, to) {
  mkdirSync(dirname(to), { recursive: true })
  cpSync(from, to, { recursive: true, verbatimSymlinks: true })
}

/** @param {string} text @returns {[word: string, rest: string][]} */
function instructionsOf(text) {
  const lines = text.replaceAll(/^\s*#.*\n/gm, '').replaceAll(/\\\n\s*/g, '')
  return Array.from(lines.matchAll(/^(\w+)\s+(.+)$/gm), ([, word = '', rest = '']) => [word, rest])
}

/**
 * Lists the files of the build context: committed, and not excluded by .dockerignore.
 *
 * @param {string} context
 */
export function filesSent(context) {
  const rules = readFileSync(join(context, '.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => ({ isSent: line.startsWith('!'), pattern: patternOf(line.replace(/^!/, '')) }))
  const files = execFileSync('git', ['ls-files', '-z'], {
    cwd: context,
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  })
  return files
    .split('\0')
    .filter((path) => path !== '' && existsSync(join(context, path)))
    .filter((path) => rules.findLast(({ pattern }) => pattern.test(path))?.isSent ?? true)
}

/**
 * Converts a glob to a pattern. `*` stays within a folder, and the pattern also matches everything below a folder.
 *
 * @param {string} glob
 */
function patternOf(glob) {
  const parts = glob.split(/(\*\*\/|\*)/).map((part) => {
    if (part === '**/') return '(.*/)?'
    return part === '*' ? '[^/]*' : part.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&')
  })
  return new RegExp(`^${parts.join('')}(/|$)`)
}
