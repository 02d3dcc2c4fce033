// Runs `slidegate bench --ramp` over HTTP, over gRPC and for the library, all on one Redis, and draws docs/load-ramp.svg:
// npm --prefix bench run ramp. With `--from`, only draws the results of the last run.
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startProcess } from '../../../packages/server/test/support/service-process.ts'
import { startOpenRedis } from '../redis/with-redis.ts'
import { configFile, LIMIT } from '../service/config-file.ts'
import { type RampResults, RESULTS_FILE, readRamps, SVG_FILE, svgOf } from './plot.ts'

const BIN = join(import.meta.dirname, '../../../packages/server/bin/slidegate.js')
const WARM_UP = ['--ramp', '1000..1000/s', '--seconds', '2']
const RAMP = ['--ramp', '100..50000/s', '--factor', '1.6', '--seconds', '2', '--keys', '1000']

if (!process.argv.includes('--from')) {
  writeFileSync(RESULTS_FILE, `${JSON.stringify(await measure(), null, 2)}\n`)
}
writeFileSync(SVG_FILE, svgOf(readRamps()))

async function measure(): Promise<RampResults> {
  const redis = await startOpenRedis()
  try {
    const config = configFile({ redis: { url: redis.url } })
    await using service = await startProcess(['--config', config], { NODE_ENV: 'production' })
    const { grpc } = await service.says('slidegate is listening')
    const http = ['api', '--url', service.url]
    const envoy = ['bench', '--grpc', `${grpc}`]
    // Warms the service up.
    for (const target of [http, envoy]) await ramp(WARM_UP, target)
    const startedAt = new Date().toISOString()
    const load = loadavg()[0]!
    const library = ['api', '--redis', redis.url, '--limit', `${LIMIT}/1m`]
    const ramps = []
    for (const target of [library, http, envoy]) ramps.push(await ramp(RAMP, target))
    const [{ model } = { model: 'unknown' }] = cpus()
    return { startedAt, cpu: model, cores: cpus().length, load, ramps }
  } finally {
    await redis.stop()
  }
}

async function ramp(
  words: readonly string[],
  target: readonly string[],
): Promise<RampResults['ramps'][number]> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    BIN,
    ...['bench', ...target, ...words, '--json'],
  ])
  return JSON.parse(stdout)
}
