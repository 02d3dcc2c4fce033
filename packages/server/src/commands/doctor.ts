// slidegate doctor: checks Redis and a running service.

import { type Command, Option } from 'commander'
import { UsageError } from '../../../replay/src/errors.ts'
import { printable } from '../../../replay/src/text.ts'
import { print, type ServiceFlags, targetOf, withServiceOptions } from '../client/command.ts'
import { isRedisUrl, withoutCredentials } from '../config/redis-url.ts'
import type { StoreConfig } from '../config/schema.ts'
import type { Check } from '../doctor/check.ts'

interface DoctorFlags extends ServiceFlags {
  readonly config?: string
  readonly redis?: string
}

const EXIT_PROBLEMS = 1

/** The default `timeoutMs` for limiters. */
const TIMEOUT_MS = 50

export function addDoctorCommand(program: Command): void {
  const command = program
    .command('doctor')
    .description('check Redis and a running service, and print how to fix problems')
    .option('-c, --config <file>', 'check the Redis in this configuration file')
    .addOption(
      new Option(
        '--redis <url>',
        'Redis to check (default: REDIS_URL), such as redis://127.0.0.1:6379; for a Cluster, several URLs separated by commas',
      ).conflicts('config'),
    )
  withServiceOptions(command).action(async (flags: DoctorFlags) => {
    const target = targetOf(flags)
    const isServiceWanted = command.getOptionValueSource('url') !== 'default'
    const { diagnosisLines, diagnosisOf } = await import('../doctor/check.ts')
    const { checkService } = await import('../doctor/service.ts')
    const [store, service] = await Promise.all([
      checkStore(flags, isServiceWanted),
      checkService(target, isServiceWanted),
    ])
    const diagnosis = diagnosisOf([...store, ...service])
    print(flags, diagnosis, () => diagnosisLines(diagnosis))
    if (diagnosis.problems > 0) process.exitCode = EXIT_PROBLEMS
  })
}

async function checkStore({ config: file, redis }: DoctorFlags, isServiceWanted: boolean): Promise<Check[]> {
  const { checkRedis } = await import('../doctor/redis.ts')
  if (file === undefined) {
    const url = redis ?? process.env.REDIS_URL
    if (url) return checkRedis(redisOf(url), '.', TIMEOUT_MS)
    if (isServiceWanted) return []
    throw new UsageError('nothing to check: pass --config, --redis or --url')
  }
  const { loadConfig } = await import('../config/load.ts')
  const { storeConfigOf } = await import('../service/stores.ts')
  const { config, folder } = loadConfig(file)
  const store = storeConfigOf(config.store, process.env).redis
  const timeouts = Object.values(config.limiters).map(({ timeoutMs = TIMEOUT_MS }) => timeoutMs)
  if (store !== undefined) return checkRedis(store, folder, Math.min(TIMEOUT_MS, ...timeouts))
  const check: Check = {
    target: `configuration ${file}`,
    name: 'store',
    status: 'ok',
    value: 'memory: each process counts separately, and a restart resets the counts',
    docs: 'docs/configuration.md#the-store-store',
  }
  return [check]
}

/** @throws {UsageError} */
function redisOf(text: string): NonNullable<StoreConfig['redis']> {
  const urls = text.split(',')
  if (urls.every(isRedisUrl)) return { url: urls.length === 1 ? text : urls }
  const shown = printable(withoutCredentials(text))
  throw new UsageError(`invalid --redis "${shown}"; use a value such as redis://user:password@127.0.0.1:6379`)
}
