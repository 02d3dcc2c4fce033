// All operations.

export * from './consume.ts'
export * from './hold.ts'
export * from './list.ts'
export * from './override.ts'
export * from './peek.ts'
export * from './refund.ts'
export * from './reset.ts'
export * from './settle.ts'
