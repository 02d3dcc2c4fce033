// Joins the parts of the Redis script into one and writes it as a module.
//
//   node scripts/embed-lua.js           writes src/stores/redis/script.generated.ts
//   node scripts/embed-lua.js --print   prints the script, for the linter
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'

// A part may use what stands before it. A new kind of limit goes before the driver.
const PARTS = [
  'stores/redis/prelude.lua',
  'limits/window-log.lua',
  'limits/sliding-window.lua',
  'limits/fixed-window.lua',
  'stores/redis/driver.lua',
]

const source = new URL('../src/', import.meta.url)

const joined = PARTS.map((part) => readFileSync(new URL(part, source), 'utf8')).join('\n')

if (process.argv.includes('--print')) {
  process.stdout.write(joined)
} else {
  // Comments are for readers of the sources; Redis need not keep them.
  const script = joined.replace(/^\s*--.*\n/gm, '')
  const sha1 = createHash('sha1').update(script).digest('hex')
  writeFileSync(
    new URL('stores/redis/script.generated.ts', source),
    `// Made by scripts/embed-lua.js from the .lua files.\n` +
      `export const SCRIPT: string = ${JSON.stringify(script)}\n` +
      `export const SCRIPT_SHA1 = '${sha1}'\n`,
  )
}
