// Writes the JSON Schema of the configuration, which editors read, from the built package.
import { writeFileSync } from 'node:fs'
import { publishedSchema } from '../dist/config/published-schema.js'

const file = new URL('../schema/config.schema.json', import.meta.url)
writeFileSync(file, `${JSON.stringify(publishedSchema(), null, 2)}\n`)
