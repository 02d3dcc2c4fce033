// Checks a running service: readiness, versions, clock and tokens.

import { formatDuration } from '../../../replay/src/text.ts'
import type { Overview } from '../admin/api-types.ts'
import { type Answer, ServiceClient, type Target } from '../client/service-client.ts'
import { VERSION } from '../service/instance.ts'
import { isLoopback } from '../service/listeners.ts'
import { type Check, counted } from './check.ts'

const ANSWER_MS = 2000
const MAX_CLOCK_MS = 5000

/** @param isWanted whether it's a problem if no service answers */
export async function checkService(target: Target, isWanted: boolean): Promise<Check[]> {
  const name = `service at ${target.url.origin}`
  const bounded = { ...target, timeoutMs: ANSWER_MS }
  const client = new ServiceClient(bounded)
  const stranger = new ServiceClient({ ...bounded, token: undefined })
  const failed = (error: unknown) => error as Error
  const [ready, overview, anonymous] = await Promise.all([
    client.answer('GET', '/readyz').catch(failed),
    client.answer('GET', '/v1/admin/overview').catch(failed),
    stranger.answer('GET', '/v1/admin/whoami').catch(failed),
  ])
  if (ready instanceof Error) {
    const missing = { target: name, name: 'connection', value: ready.message }
    if (!isWanted) return [{ ...missing, status: 'skipped', fix: "pass the service's URL as --url" }]
    return [
      {
        ...missing,
        status: 'problem',
        expected: 'a response within 2 s',
        fix: 'start it with slidegate serve, or correct --url',
        docs: 'docs/deploy.md#health',
      },
    ]
  }
  const found = [
    readyCheck(ready),
    ...(overview instanceof Error ? [] : overviewChecks(overview)),
    ...(anonymous instanceof Error ? [] : [tokenCheck(anonymous, target.url)]),
  ]
  return found.map((check) => ({ target: name, ...check }))
}

type Found = Omit<Check, 'target'>

function readyCheck({ status, body }: Answer): Found {
  const name = 'ready'
  const docs = 'docs/deploy.md#health'
  const { ready, reasons, config } = Object(body) as {
    ready?: boolean
    reasons?: readonly string[]
    config?: { valid: boolean }
  }
  if (ready === undefined || !Array.isArray(reasons)) {
    const value = `unexpected response (HTTP ${status}); is it a slidegate service?`
    return { name, status: 'problem', value, expected: 'a slidegate service', fix: 'correct --url', docs }
  }
  const why = [...reasons, ...(config?.valid === false ? ['the configuration file is invalid'] : [])]
  if (why.length === 0) return { name, status: 'ok', value: 'ready' }
  return {
    name,
    status: ready ? 'warning' : 'problem',
    value: `${ready ? 'ready' : 'not ready'}: ${why.join(', ')}`,
    expected: 'ready, without problems',
    fix:
      config?.valid === false
        ? 'slidegate validate <file>'
        : reasons.includes('draining')
          ? 'slidegate drain off'
          : 'start Redis; see the checks above',
    docs,
  }
}

function overviewChecks({ status, body }: Answer): Found[] {
  if (status === 401 || status === 403) {
    return [
      {
        name: 'instances',
        status: 'skipped',
        value: `checking version, instances and clock needs a token with the read role (HTTP ${status})`,
        fix: 'pass --token-file',
        docs: 'docs/api.md#permissions',
      },
    ]
  }
  const { instances, missing, atMs } = Object(body) as Partial<Overview>
  if (status !== 200 || instances === undefined || atMs === undefined) return []
  const versions = Array.from(new Set(instances.map(({ version }) => version))).sort()
  const hosts = new Set(instances.map(({ host }) => host))
  const isOne = versions.length === 1 && versions[0] === VERSION
  const all: Found = {
    name: 'instances',
    status: missing === 0 ? 'ok' : 'warning',
    value: `${instances.length} on ${counted(hosts.size, 'machine')}; ${missing} not responding`,
    ...(missing !== 0 && {
      expected: 'all responding',
      fix: "run slidegate limiters, and check the instances' logs",
      docs: 'docs/alerts.md#slidegateinstancedown',
    }),
  }
  const version: Found = {
    name: 'version',
    status: isOne ? 'ok' : 'warning',
    value: versions.join(', '),
    ...(!isOne && {
      expected: `${VERSION} everywhere, the same as this command`,
      fix: 'deploy the same version to all instances',
      docs: 'docs/deploy.md#upgrading',
    }),
  }
  return [all, version, clockCheck(Date.now() - atMs)]
}

/** @param ageMs how long ago the second in the cached overview began: 1 to 3 s if the clocks agree */
function clockCheck(ageMs: number): Found {
  const skewMs = Math.round(2000 - ageMs)
  const isNear = Math.abs(skewMs) <= MAX_CLOCK_MS
  const apart = `${formatDuration(Math.abs(skewMs))} ${skewMs > 0 ? 'ahead of' : 'behind'} this machine`
  return {
    name: 'clock',
    status: isNear ? 'ok' : 'warning',
    value: isNear ? "close to this machine's" : `the instance that answered is ${apart}`,
    ...(!isNear && {
      expected: 'within 5s',
      fix: 'run NTP on all machines, and check it with chronyc tracking',
      docs: 'docs/production.md#clocks',
    }),
  }
}

/** @param answer the answer to a request without a token */
function tokenCheck({ status, body }: Answer, { hostname }: URL): Found {
  const name = 'tokens'
  const host = hostname.replace(/^\[|\]$/g, '')
  const { role } = Object(body) as { role?: string }
  if (status !== 200 || role === undefined) return { name, status: 'ok', value: 'required' }
  if (isLoopback(host)) return { name, status: 'ok', value: `not required on loopback (role ${role})` }
  return {
    name,
    status: role === 'admin' ? 'problem' : 'warning',
    value: `not required: anyone who can connect has the role ${role}`,
    expected: 'required, except on loopback',
    fix: 'set auth.tokens and remove auth.anonymous',
    docs: 'docs/configuration.md#access-auth',
  }
}
