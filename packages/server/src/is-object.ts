// Whether a value is an object of JSON. Commands load this without a parser of YAML, so that they start fast.

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
