interface Value {
  readonly kind?: string
  // biome-ignore lint/suspicious/noExplicitAny: one of many shapes
  readonly [name: string]: any
}

/** Converts a decoded `google.protobuf.Struct` to plain data. */
export function structIn(struct: { readonly fields: Readonly<Record<string, Value>> } | null): unknown {
  if (struct === null) return undefined
  return Object.fromEntries(Object.entries(struct.fields).map(([name, value]) => [name, plain(value)]))
}

function plain(value: Value): unknown {
  if (value.listValue) return value.listValue.values.map(plain)
  if (value.structValue) return structIn(value.structValue)
  if (value.nullValue !== undefined && value.nullValue !== null) return null
  for (const name of ['stringValue', 'numberValue', 'boolValue']) {
    if (value[name] !== undefined && value[name] !== null) return value[name]
  }
  return undefined
}
