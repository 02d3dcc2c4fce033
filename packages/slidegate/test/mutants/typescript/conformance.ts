import { describe, it } from 'vitest'
import { memoryStore } from '../../../src/index.ts'
import { storeConformance } from '../../../src/testing/index.ts'

describe('memory', () => {
  for (const { name, run } of storeConformance) it(name, () => run(({ clock }) => memoryStore({ clock })))
})
