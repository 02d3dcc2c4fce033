// Joins the parts of the Redis script into one and writes it as a module.
//
//   node scripts/embed-lua.js           writes src/stores/redis/script.generated.ts
//   node scripts/embed-lua.js --print   prints the script, for the linter
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const source = new URL('../src/', import.meta.url)

/** The text of a part, by its path in `src`. */
export const read = (/** @type {string} */ part) => readFileSync(new URL(part, source), 'utf8')

/** The kinds, in the order of their numbers. Each is a file in `limits`. */
const KINDS = [
  'packed-window',
  'token-bucket',
  'fixed-window',
  'sliding-counter',
  'entry-window',
  'stream-window',
  'distinct-sketch',
  'ban',
]

/** The operations other than decisions. Each is a file in `ops`. */
const OPERATIONS = readdirSync(new URL('ops/', source))
  .filter((name) => name.endsWith('.lua') && !/^(prelude|driver|consume|rare)\./.test(name))
  .map((name) => name.replace('.lua', ''))

/** Returns the sections of a file by name. The text before the first `--- name` line has the name "". */
function sectionsOf(/** @type {string} */ lua) {
  const [first = '', ...sections] = lua.split(/^--- /m)
  const named = sections.map((text) => {
    const end = text.indexOf('\n')
    return /** @type {const} */ ([text.slice(0, end), text.slice(end + 1)])
  })
  return new Map([['', first], ...named])
}

/** Replaces each `--- name` line with the section of that name. */
function fill(/** @type {string} */ lua, /** @type {Map<string, string>} */ sections) {
  return lua.replace(/^ *--- (\w+)\n/gm, (_, name) => sections.get(name) ?? '')
}

/**
 * Joins the parts. A part may use the parts before it. Redis creates all functions of a script at each call. So code that few
 * calls need is inside a function, and each kind is in the branch that first needs it. Two sections of a kind are used by both
 * its decisions and its tables: `shared` contains functions, and `read` is inserted as text, before `load` and where the tables
 * name it.
 */
function join(/** @type {(part: string) => string} */ read) {
  const decide = read('ops/consume.lua')
  const kinds = KINDS.map((name) => {
    const kind = sectionsOf(read(`limits/${name}.lua`))
    return kind.set('load', `${kind.get('read') ?? ''}${kind.get('load')}`)
  })
  const branches = (/** @type {(kind: Map<string, string>, i: number) => string} */ textOf) =>
    `${kinds.map((kind, i) => `if kind == ${i + 1} then\n${kind.get('shared') ?? ''}${textOf(kind, i)}`).join('else')}end\n`
  const override = sectionsOf(read('limits/override.lua'))
  const operations = OPERATIONS.map(
    (name) => `if name == '${name}' then\n${fill(read(`ops/${name}.lua`), override)}`,
  )
  const body = decide.slice(decide.indexOf('\nfunction(') + 1)
  return [
    read('ops/prelude.lua'),
    ...kinds.map((kind) => kind.get('')),
    override.get(''),
    fill(
      read('ops/driver.lua'),
      new Map([
        ['kinds', branches((kind) => `${kind.get('before') ?? ''}kinds[kind] = ${fill(body, kind)}`)],
        [
          'tables',
          branches(
            (kind, i) => `${fill(kind.get('tables') ?? '', kind)}made = ${KINDS[i]?.replaceAll('-', '_')}\n`,
          ),
        ],
        ['override', override.get('override') ?? ''],
        ['rare', fill(read('ops/rare.lua'), new Map([['operations', `${operations.join('else')}end\n`]]))],
      ]),
    ),
  ].join('\n')
}

/** Inlines constants (`local NAME = literal`), because Redis would create them at each call, too. */
function inlineConstants(/** @type {string} */ lua) {
  const constants = new Map(
    Array.from(lua.matchAll(/^local ([A-Z][A-Z_]*) = (.*)$/gm), ([, name, value]) => [name, value]),
  )
  return lua
    .replace(/^local [A-Z][A-Z_]* = .*\n/gm, '')
    .replace(/\b[A-Z][A-Z_]+\b/g, (word) => (constants.has(word) ? `(${constants.get(word)})` : word))
}

/** Returns the script, made of parts that `read` returns. Removes comments and indents, so that Redis needn't store them. */
export const scriptOf = (/** @type {(part: string) => string} */ read) =>
  inlineConstants(join(read).replace(/^\s*--.*\n/gm, '')).replace(/^ +/gm, '')

export const sha1Of = (/** @type {string} */ script) => createHash('sha1').update(script).digest('hex')

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  if (process.argv.includes('--print')) {
    process.stdout.write(join(read))
  } else {
    const script = scriptOf(read)
    writeFileSync(
      new URL('stores/redis/script.generated.ts', source),
      `// Made by scripts/embed-lua.js from the .lua files.\n` +
        `export const SCRIPT: string = ${JSON.stringify(script)}\n` +
        `export const SCRIPT_SHA1 = '${sha1Of(script)}'\n`,
    )
  }
}
