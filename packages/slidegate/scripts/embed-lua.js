// Joins the parts of the Redis script into one and writes it as a module.
//
//   node scripts/embed-lua.js           writes src/stores/redis/script.generated.ts
//   node scripts/embed-lua.js --print   prints the script, for the linter
import { createHash } from 'node:crypto'
import { readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const source = new URL('../src/', import.meta.url)

/** The text of a part, by its path in `src`. */
export const read = (/** @type {string} */ part) => readFileSync(new URL(part, source), 'utf8')

/** The kinds of limits by their tags: the files that make each. The last one answers the kind. */
const KINDS = {
  w: ['window-log', 'packed-window'],
  z: ['entry-window'],
  x: ['stream-window'],
  f: ['fixed-window'],
  t: ['token-bucket'],
  c: ['sliding-counter'],
  e: ['distinct-sketch'],
  b: ['ban'],
}

/** The kinds that usual ops may have, in order of their numbers. */
const USUAL = ['packed-window', 'token-bucket', 'fixed-window', 'sliding-counter']

/** The sections of a file, by the names that stand before them. */
function sectionsOf(/** @type {string} */ lua) {
  const sections = lua.split(/^(?=--- \w+\n)/m).slice(1)
  return new Map(
    sections.map((text) => [text.slice(4, text.indexOf('\n')), text.slice(text.indexOf('\n') + 1)]),
  )
}

/** The functions that decide usual ops, each made by the first that needs it. */
function usualKinds(/** @type {(part: string) => string} */ read) {
  const lua = read('stores/redis/usual.lua')
  const decide = lua.slice(lua.indexOf('\nfunction(') + 1)
  const branches = USUAL.map((kind, i) => {
    const sections = sectionsOf(read(`limits/${kind}-usual.lua`))
    const body = decide.replace(/^ *--- (\w+)\n/gm, (_, step) => sections.get(step) ?? '')
    return `if kind == ${i + 1} then\n${sections.get('before') ?? ''}kinds[kind] = ${body}`
  })
  return `${branches.join('else')}end\n`
}

// A part may use what stands before it. What only the general driver needs stands inside one function, and what only
// one kind needs inside another: Redis makes all functions of a script anew at each call, and most calls do without
// these. The driver has a prelude of its own, for each name that a function takes from outside makes the function
// dearer.
/**
 * @param {(part: string) => string} read
 * @param {boolean} isForLinter
 */
function join(read, isForLinter) {
  const prelude = read('stores/redis/prelude.lua')
  const makers = Object.entries(KINDS).map(
    ([tag, parts]) =>
      `function makers.${tag}()\n${parts.map((part) => read(`limits/${part}.lua`)).join('\n')}\nend`,
  )
  return `${prelude}
local function general_driver(reply)
${isForLinter ? '' : prelude}
local makers = {}
${makers.join('\n')}
${read('stores/redis/general.lua')}
${read('stores/redis/beyond.lua')}
local override_made
override = function()
if not override_made then override_made = (function()
${read('limits/override.lua')}
end)() end
return override_made
end
${read('stores/redis/apply.lua')}
end
${read('stores/redis/main.lua').replace(/^ *--- kinds\n/m, usualKinds(read))}`
}

/** For the same reason constants (`local NAME = literal`) are written out where they are used. */
function inlineConstants(/** @type {string} */ lua) {
  const constants = new Map(
    Array.from(lua.matchAll(/^local ([A-Z][A-Z_]*) = (.*)$/gm), ([, name, value]) => [name, value]),
  )
  return lua
    .replace(/^local [A-Z][A-Z_]* = .*\n/gm, '')
    .replace(/\b[A-Z][A-Z_]+\b/g, (word) => (constants.has(word) ? `(${constants.get(word)})` : word))
}

/** The script, of parts that are read so. Comments and indents are for readers of the sources; Redis need not keep them. */
export const scriptOf = (/** @type {(part: string) => string} */ read) =>
  inlineConstants(join(read, false).replace(/^\s*--.*\n/gm, '')).replace(/^ +/gm, '')

export const sha1Of = (/** @type {string} */ script) => createHash('sha1').update(script).digest('hex')

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  if (process.argv.includes('--print')) {
    process.stdout.write(join(read, true))
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
