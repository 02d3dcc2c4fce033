// Appends numbered lines to a file in small batches, as one of several processes.
import { LineFile } from '../../src/capture/line-file.ts'

const [path = '', name = '', batches = '0', maxBytes] = process.argv.slice(2)
const file = new LineFile(path, maxBytes === undefined ? {} : { maxBytes: Number(maxBytes) })
const PER_BATCH = 20

for (let batch = 0; batch < Number(batches); batch++) {
  const lines = Array.from({ length: PER_BATCH }, (_, i) =>
    JSON.stringify({
      time: 1_700_000_000_000 + batch,
      key: `${name}-${batch * PER_BATCH + i}`,
      pad: 'x'.repeat((batch * 7 + i * 13) % 300),
    }),
  )
  await file.append(lines)
  if (batch === 10) process.stdout.write('begun\n')
}
await file.close()
