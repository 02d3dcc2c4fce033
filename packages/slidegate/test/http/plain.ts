import {
  type Binding,
  createGuard,
  type Guard,
  type GuardOptions,
  type HeaderSet,
  type Verdict,
} from '../../src/http/index.ts'

// A test framework whose requests are the keys or addresses of callers.

export type PlainOptions = GuardOptions<[request: string]>

const PLAIN: Binding<[request: string]> = {
  address: (request) => request,
  peer: (request) => request,
  header: () => undefined,
  signal: () => new AbortController().signal,
  canDrop: true,
}

export function plainGuard(options: PlainOptions, binding: Partial<Binding<[string]>> = {}): Guard<[string]> {
  const isObject = typeof options === 'object' && options !== null
  const given = isObject ? { key: (request: string) => request, ...options } : options
  return createGuard<[string]>(given, { ...PLAIN, ...binding })
}

/** Returns all headers that a verdict sets, by name. */
export function fieldsOf({ headers, denial }: Verdict): Record<string, string> {
  const own = denial === undefined || denial.action === 'drop' ? [] : denial.headers
  const all = [...headers.flatMap((set: HeaderSet) => set.headers), ...own]
  return Object.fromEntries(all.map(({ name, value }) => [name, value]))
}
