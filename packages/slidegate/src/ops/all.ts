// All operations, one per line.

export * from './charge.ts'
export * from './consume.ts'
export * from './explain.ts'
export * from './hold.ts'
export * from './list.ts'
export * from './override.ts'
export * from './overrides.ts'
export * from './peek.ts'
export * from './refund.ts'
export * from './reset.ts'
export * from './settle.ts'
