import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ROOT } from '../docs/markdown.ts'
import { manifestOf } from './npm.ts'

const EXPORTED =
  /^export (?:declare )?(?:interface|type|class|function|const) (\w+)|^export (?:type )?\{([^}]+)\} from/gm

/** Returns the names that a module's declarations export. */
function namesIn(declarations: string): string[] {
  // Fails on export statements that the pattern doesn't match.
  expect(declarations.replaceAll(EXPORTED, '')).not.toMatch(/^export (?!\{\};)/m)
  const names = Array.from(declarations.matchAll(EXPORTED), ([, name, list]) => name ?? list!.split(','))
  return names
    .flat()
    .map((name) => name.replace(/^\s*type /, '').trim())
    .filter((name) => name !== '')
    .sort()
}

it('the public names match public-names.txt', async () => {
  const { exports } = await manifestOf('slidegate')
  const lines = Object.entries(exports).flatMap(([path, to]) => {
    if (typeof to === 'string') return []
    const declarations = readFileSync(join(ROOT, 'packages/slidegate', to.types), 'utf8')
    return [path.replace('.', 'slidegate'), ...namesIn(declarations).map((name) => `  ${name}`)]
  })
  await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('./public-names.txt')
})
