// tier: system
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { ROOT } from '../../../slidegate/test/docs/markdown.ts'
import { until } from '../../../slidegate/test/support/until.ts'
import { temporaryFolder } from '../support/cli.ts'
import { alertmanagerConfig, startAlertmanager } from './alertmanager.ts'

const CONFIG = join(ROOT, 'deploy/alertmanager/alertmanager.yaml')
const amtool = (...words: string[]) => promisify(execFile)('amtool', words)

it('amtool accepts the configuration', async () => {
  const folder = temporaryFolder()
  try {
    const files = ['slack-url', 'smtp-password'].map((name) => folder.write(name, 'secret'))
    const file = folder.write('alertmanager.yaml', await alertmanagerConfig(files[0]!, files[1]!))
    const { stdout } = await amtool('check-config', file)
    expect(stdout).toContain('SUCCESS')
  } finally {
    folder.remove()
  }
})

it.each([
  ['critical', 'slack-and-mail'],
  ['warning', 'slack'],
  ['info', 'slack'],
])('%s alerts go to %s', async (severity, receiver) => {
  const { stdout } = await amtool(
    'config',
    'routes',
    'test',
    `--config.file=${CONFIG}`,
    `severity=${severity}`,
  )
  expect(stdout.trim()).toBe(receiver)
})

it('alerts are grouped by limiter, critical ones are mailed, and consequences are inhibited', async () => {
  await using alertmanager = await startAlertmanager()
  const alert = (alertname: string, severity: string, labels: object = {}) => ({
    labels: { alertname, severity, ...labels },
    annotations: {
      summary: `${alertname} happened`,
      description: 'Details.',
      runbook_url: 'https://runbooks.example',
      dashboard_url: 'https://slidegate.example/#/limiters/api',
    },
  })
  const api = { limiter: 'api' }
  const posted = await fetch(`${alertmanager.url}/api/v2/alerts`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify([
      alert('SlidegateDenialsHigh', 'warning', api),
      alert('SlidegateDenialsUnusual', 'warning', api),
      alert('SlidegateQueueLong', 'warning', api),
      alert('SlidegateDenialsUnusual', 'warning', { limiter: 'login' }),
      alert('SlidegateStoreDown', 'critical', { limiter: 'pay' }),
      alert('SlidegateStoreErrors', 'warning', { limiter: 'pay' }),
      alert('SlidegateInstanceDown', 'warning', { instance: 'a:8080' }),
      alert('SlidegateConfigInvalid', 'warning', { instance: 'a:8080' }),
      alert('SlidegateEventLoopLag', 'warning', { instance: 'b:8080' }),
    ]),
  })
  expect(posted.status).toBe(200)
  await until('the messages', async () => alertmanager.slack.length >= 4 && alertmanager.mails.length >= 1)

  const told = alertmanager.slack.map(
    ({ title, text }) =>
      `${title}: ${Array.from(text.matchAll(/\*(\w+) happened\*/g), ([, name]) => name).sort()}`,
  )
  expect(told.sort()).toEqual([
    '1 firing: login: SlidegateDenialsUnusual',
    '1 firing: pay: SlidegateStoreDown',
    '2 firing: SlidegateEventLoopLag,SlidegateInstanceDown',
    '2 firing: api: SlidegateDenialsHigh,SlidegateQueueLong',
  ])
  const [message] = alertmanager.slack
  expect(message!.channel).toBe('#alerts')
  expect(message!.text).toContain(
    'Details. <https://runbooks.example|What to do> <https://slidegate.example/#/limiters/api|Dashboard>',
  )
  expect(alertmanager.mails).toHaveLength(1)
  expect(alertmanager.mails[0]).toContain('firing: SlidegateStoreDown happened')
  expect(alertmanager.mails[0]).toContain('https://runbooks.example')
  expect(alertmanager.mails[0]).toContain('https://slidegate.example/#/limiters/api')
})

it('an outage of all instances or of Redis inhibits all other alerts', async () => {
  await using alertmanager = await startAlertmanager()
  const post = (...alerts: (readonly [string, object])[]) =>
    fetch(`${alertmanager.url}/api/v2/alerts`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(
        alerts.map(([alertname, labels]) => ({ labels: { alertname, severity: 'warning', ...labels } })),
      ),
    })
  const silenced = async () => {
    const found =
      await alertmanager.get<{ labels: { alertname: string }; status: { inhibitedBy: string[] } }[]>(
        '/api/v2/alerts',
      )
    return found.filter(({ status }) => status.inhibitedBy.length > 0).map(({ labels }) => labels.alertname)
  }
  const store = ['SlidegateStoreDown', 'SlidegateStoreErrors', 'SlidegateStoreSlow'] as const
  await post(
    ...store.map((name) => [name, { limiter: 'api', instance: 'a:8080' }] as const),
    ['SlidegateRedisDown', { node: 'redis:6379' }],
    ['SlidegateManyCallers', { limiter: 'api' }],
  )
  await until('Redis', async () => (await silenced()).sort().join() === store.join())
  await post(['SlidegateDown', {}])
  const all = [...store, 'SlidegateRedisDown', 'SlidegateManyCallers'].sort()
  await until('all', async () => (await silenced()).sort().join() === all.join())
})
