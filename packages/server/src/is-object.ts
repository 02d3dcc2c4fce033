// A check for JSON objects. It imports nothing, so that commands without a configuration start without the YAML parser.

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
