// Writes the JSON Schema of the configuration, which editors read, from the built package.
import { writeFileSync } from 'node:fs'

// A computed URL, so that TypeScript doesn't look for types in the build output.
const built = new URL('../dist/config/published-schema.js', import.meta.url).href
const { publishedSchema } = await import(built)

const file = new URL('../schema/config.schema.json', import.meta.url)
writeFileSync(file, `${JSON.stringify(publishedSchema(), null, 2)}\n`)
