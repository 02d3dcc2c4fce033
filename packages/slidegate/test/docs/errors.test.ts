import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ROOT } from './markdown.ts'

// docs/errors.md has exactly one entry for each error code.

const read = (path: string) => readFileSync(join(ROOT, 'packages', path), 'utf8')

function sourcesIn(folder: string): string {
  return readdirSync(join(ROOT, 'packages', folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.generated.ts'))
    .map((file) => read(join(folder, file)))
    .join('\n')
}

function found(text: string, pattern: RegExp): string[] {
  return Array.from(text.matchAll(pattern), ([, code]) => code!)
}

/** Returns the members of a union of string literals. */
function membersOf(file: string, type: string): string[] {
  const [, union] = new RegExp(`^export type ${type} =([^;]*?)\\n(?=\\n|/)`, 'm').exec(read(file))!
  return found(union!, /'(\w+)'/g)
}

const service = ['http', 'service', 'gateway', 'admin', 'capture'].map((folder) =>
  sourcesIn(`server/src/${folder}`),
)

const CODES: Readonly<Record<string, readonly string[]>> = {
  'of the library': membersOf('slidegate/src/errors.ts', 'SlidegateErrorCode'),
  'of the store': membersOf('slidegate/src/errors.ts', 'StoreUnavailableReason').map(
    (reason) => `store_${reason}`,
  ),
  'of waits': membersOf('slidegate/src/errors.ts', 'WaitErrorReason').map((reason) => `wait_${reason}`),
  'of warnings': found(sourcesIn('slidegate/src'), /'(SLIDEGATE_\w+)'/g),
  'of problems': found(
    read('slidegate/src/http/denial-message.ts'),
    /^ {2}readonly type: '(?:.*#)?([\w:-]+)'/gm,
  ),
  'of the service': [
    ...found(service.join('\n'), /(?:ServiceError|bodyOf)\(\s*\d{3},\s*'(\w+)'/g),
    ...found(read('server/src/http/problems.ts'), /^ {2}FST_\w+: \[\s*'(\w+)'/gm),
  ],
  'of gRPC': found(read('server/src/envoy/handler.ts'), /\bstatus\.([A-Z_]+)/g),
  'of the command line': found(read('server/src/client/service-client.ts'), /^ {2}\w+: (\d),/gm).map(
    (code) => `exit ${code}`,
  ),
}

const entries = found(readFileSync(join(ROOT, 'docs/errors.md'), 'utf8'), /^### `(.*)`$/gm)

describe('docs/errors.md', () => {
  it.each(Object.entries(CODES))('lists each code %s', (_, codes) => {
    expect(codes.length).toBeGreaterThan(1)
    expect(codes.filter((code) => !entries.includes(code))).toEqual([])
  })

  it('lists each code once, and no others', () => {
    expect(entries.filter((code, i) => entries.indexOf(code) !== i)).toEqual([])
    const codes = Object.values(CODES).flat()
    expect(entries.filter((code) => !codes.includes(code))).toEqual([])
  })
})
