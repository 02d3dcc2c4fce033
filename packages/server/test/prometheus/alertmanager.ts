import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import { join } from 'node:path'
import { deployed, replaced } from '../gateway/support/programs.ts'
import { type Program, startProgram } from './program.ts'

// Debian and the project use different names.
const ALERTMANAGER = existsSync('/usr/bin/prometheus-alertmanager')
  ? 'prometheus-alertmanager'
  : 'alertmanager'

/** The parts that are used here. */
interface SlackMessage {
  readonly channel: string
  readonly title: string
  readonly text: string
}

/** An Alertmanager with the example configuration and shorter intervals, and its receivers. */
export interface Alertmanager extends Program {
  readonly slack: readonly SlackMessage[]
  /** The mails in order of arrival. */
  readonly mails: readonly string[]
}

/** Returns the configuration with these secret files and short intervals. */
export async function alertmanagerConfig(
  slackUrl: string,
  smtpPassword: string,
  mailServer = 'mail.example:587',
): Promise<string> {
  return replaced(await deployed('alertmanager/alertmanager.yaml'), {
    '/run/secrets/slack-url': slackUrl,
    '/run/secrets/smtp-password': smtpPassword,
    'mail.example:587': mailServer,
    'smtp_require_tls: true': 'smtp_require_tls: false',
    'group_wait: 30s': 'group_wait: 1s',
    'group_wait: 10s': 'group_wait: 1s',
    'group_wait: 5m': 'group_wait: 1s',
    // Later messages of a group must not wait for earlier ones.
    'group_interval: 5m': 'group_interval: 1s',
    'group_interval: 1h': 'group_interval: 1s',
  })
}

export async function startAlertmanager(): Promise<Alertmanager> {
  const slack: SlackMessage[] = []
  const mails: string[] = []
  const webhook = createHttpServer(async (request, response) => {
    let body = ''
    for await (const part of request.setEncoding('utf8')) body += part
    const { channel, attachments } = JSON.parse(body)
    slack.push({ channel, title: attachments[0].title, text: attachments[0].text })
    response.end('ok')
  })
  const mailbox = mailServer(mails)
  const [webhookPort, mailPort] = await Promise.all([listening(webhook), listening(mailbox)])
  const close = async () => {
    webhook.closeAllConnections()
    await Promise.all([webhook, mailbox].map((server) => new Promise((resolve) => server.close(resolve))))
  }
  try {
    const program = await startProgram(ALERTMANAGER, async (folder, address) => {
      const files = ['slack-url', 'smtp-password', 'alertmanager.yaml'].map((name) => join(folder, name))
      const [slackUrl, smtpPassword, config] = files as [string, string, string]
      await writeFile(slackUrl, `http://127.0.0.1:${webhookPort}/`)
      await writeFile(smtpPassword, 'the-password')
      await writeFile(config, await alertmanagerConfig(slackUrl, smtpPassword, `127.0.0.1:${mailPort}`))
      return [
        `--config.file=${config}`,
        `--storage.path=${join(folder, 'data')}`,
        `--web.listen-address=${address}`,
        '--cluster.listen-address=',
        '--log.level=error',
      ]
    })
    return {
      ...program,
      slack,
      mails,
      [Symbol.asyncDispose]: async () => {
        await program[Symbol.asyncDispose]()
        await close()
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}

function listening(server: Server): Promise<number> {
  return new Promise((resolve) =>
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)),
  )
}

/** Creates a mail server with the part of SMTP that receiving a mail requires. */
function mailServer(mails: string[]): Server {
  return createTcpServer((socket) => {
    let data: string | undefined
    let rest = ''
    socket.on('error', () => {})
    socket.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\r\n')
      rest = lines.pop()!
      for (const line of lines) {
        if (data !== undefined && line !== '.') data += `${line}\n`
        else if (data !== undefined) {
          mails.push(data)
          data = undefined
          socket.write('250 taken\r\n')
        } else if (line.startsWith('EHLO')) socket.write('250-localhost\r\n250 AUTH PLAIN\r\n')
        else if (line.startsWith('AUTH')) socket.write('235 known\r\n')
        else if (line === 'DATA') {
          data = ''
          socket.write('354 go on\r\n')
        } else if (line === 'QUIT') socket.end('221 bye\r\n')
        else socket.write('250 ok\r\n')
      }
    })
    socket.write('220 localhost\r\n')
  })
}
