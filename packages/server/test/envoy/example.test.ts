import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { loadConfig } from '../../src/config/load.ts'

const FOLDER = fileURLToPath(new URL('../../../../deploy/envoy/', import.meta.url))

interface Action {
  readonly remote_address?: object
  readonly request_headers?: { readonly descriptor_key: string }
  readonly generic_key?: { readonly descriptor_key: string; readonly descriptor_value: string }
}

/** Returns the entry that Envoy would send for an action. */
function entryOf({ request_headers: header, generic_key: generic }: Action): { key: string; value: string } {
  if (header !== undefined) return { key: header.descriptor_key, value: 'x' }
  if (generic !== undefined) return { key: generic.descriptor_key, value: generic.descriptor_value }
  return { key: 'remote_address', value: '192.0.2.1' }
}

it('every descriptor in the Envoy example has a limit in its files', () => {
  const { domains } = loadConfig(`${FOLDER}slidegate.yaml`, { environment: {} })
  const envoy = parse(readFileSync(`${FOLDER}envoy.yaml`, 'utf8'))
  const manager = envoy.static_resources.listeners[0].filter_chains[0].filters[0].typed_config
  const [filter] = manager.http_filters
  const [host] = manager.route_config.virtual_hosts
  const rateLimits = [
    ...host.rate_limits,
    ...host.routes.flatMap(({ route }: { route: { rate_limits?: unknown[] } }) => route.rate_limits ?? []),
  ] as { actions: Action[] }[]
  const domain = domains!.get(filter.typed_config.domain)!
  const paths = rateLimits.map(({ actions }) => domain.match(actions.map(entryOf))?.rule.path)
  expect(paths).toEqual(['remote_address', 'api_key', 'route_reports.remote_address'])
})
