// tier: system
import { expect, it, onTestFinished } from 'vitest'
import { makeCertificates } from '../../../slidegate/test/support/tls.ts'
import { adminService } from '../admin/support.ts'
import { slidegateHere } from '../support/cli.ts'

it('a command speaks TLS, with a client certificate if the service requires one', async () => {
  const limits = [{ kind: 'slidingWindow' as const, limit: 3, window: '1h' }]
  const certificates = await makeCertificates()
  onTestFinished(() => certificates.remove())
  const { ca, certificate: cert, key } = certificates.files
  await using service = await adminService({
    limiters: { api: { limits } },
    listen: { tls: { cert, key, clientCa: ca } },
  })
  expect(service.url).toMatch(/^https:/)
  const run = (words: readonly string[]) =>
    slidegateHere(words, { SLIDEGATE_URL: service.url, SLIDEGATE_TOKEN: undefined })
  const trusted = ['--ca', ca]
  const known = [...trusted, '--cert', cert, '--cert-key', key]
  const asked = ['consume', 'api', 'ann']
  expect(await run([...asked, ...known])).toMatchObject({ code: 0, stderr: '' })
  expect(await run(asked)).toMatchObject({ code: 4 })
  expect(await run([...asked, ...trusted])).toMatchObject({ code: 4 })
  const bench = ['bench', 'api', '--seconds', '1', '--connections', '2', ...known]
  expect(await run(bench)).toMatchObject({ code: 0, stderr: '' })
})
