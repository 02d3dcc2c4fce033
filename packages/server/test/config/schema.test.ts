import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { publishedSchema } from '../../src/config/published-schema.ts'

// Resolves the file as users of the package would.
const file = createRequire(import.meta.url).resolve('slidegate-server/schema.json')
const schema = JSON.parse(readFileSync(file, 'utf8'))
const docs = readFileSync(new URL('../../../../docs/configuration.md', import.meta.url), 'utf8')

type Node = Readonly<Record<string, unknown>>

/** Returns all properties of a schema, with their descriptions. */
function propertiesOf(node: unknown): [name: string, schema: Node][] {
  if (typeof node !== 'object' || node === null) return []
  const own = 'properties' in node && !('const' in node) ? Object.entries(node.properties as Node) : []
  return [
    ...(own as [string, Node][]).filter(([, value]) => typeof value === 'object'),
    ...Object.values(node).flatMap(propertiesOf),
  ]
}

describe('the published schema', () => {
  // `vitest -u` writes it.
  it('matches the source', async () => {
    await expect(`${JSON.stringify(publishedSchema(), null, 2)}\n`).toMatchFileSnapshot(file)
  })

  it('passes a strict validator', () => {
    const isValid = new Ajv2020({ strict: true, allowUnionTypes: true }).compile(schema)
    for (const example of ['slidegate.yaml', 'slidegate.json']) {
      const text = readFileSync(new URL(`../../examples/${example}`, import.meta.url), 'utf8')
      expect(isValid(parse(text))).toBe(true)
    }
    expect(isValid({ limitres: {} })).toBe(false)
    const limit = { kind: 'slidingWindow', limit: 0, window: '1s' }
    expect(isValid({ limiters: { api: { limits: [limit] } } })).toBe(false)
  })

  it('accepts environment variables for every value', () => {
    const isValid = new Ajv2020({ strict: true, allowUnionTypes: true }).compile(schema)
    const variable = '$' + '{NAME:-default}'
    const limit = {
      kind: 'slidingWindow',
      limit: variable,
      window: variable,
      shadow: variable,
      log: variable,
    }
    const auth = { tokens: [{ name: variable, role: variable, token: '$' + '{TOKEN}' }], anonymous: variable }
    const store = { redis: { url: variable, buckets: variable, cluster: variable } }
    expect(isValid({ limiters: { api: { limits: [limit] } }, auth, store })).toBe(true)
  })

  it('describes every property', () => {
    const silent = propertiesOf(schema).filter(([, { description, $ref, const: kind, items }]) => {
      const isTold = description ?? $ref ?? kind ?? (items as Node | undefined)?.description
      return isTold === undefined
    })
    expect(silent.map(([name]) => name)).toEqual([])
  })
})

describe('the documentation', () => {
  it('lists every property', () => {
    const names = new Set(propertiesOf(schema).map(([name]) => name))
    expect(names.size).toBeGreaterThan(60)
    expect(Array.from(names).filter((name) => !docs.includes(`\`${name}\``))).toEqual([])
  })
})
