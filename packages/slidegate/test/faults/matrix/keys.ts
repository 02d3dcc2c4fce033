import { bucketOf, crc16, tagsOf } from '../../../src/stores/redis/keyspace.ts'

const BUCKETS = 64
const SLOTS = 16_384

/** The first names with this beginning that lie in a bucket. */
function namesIn(bucket: number, beginning: string, count: number): string[] {
  const names: string[] = []
  for (let i = 0; names.length < count; i++) {
    if (bucketOf(`${beginning}${i}`, BUCKETS) === bucket) names.push(`${beginning}${i}`)
  }
  return names
}

/** Where faults of a Cluster happen. */
const STRUCK_BUCKET = 5

/** Keys of others are in each third of all slots. */
const OTHER_BUCKETS = [30, 55]

/** Several keys where faults happen, which then travel together, and some elsewhere. */
export function keysWith(beginning: string): readonly string[] {
  return [
    ...namesIn(STRUCK_BUCKET, beginning, 3),
    ...OTHER_BUCKETS.flatMap((bucket) => namesIn(bucket, beginning, 1)),
  ]
}

export const STRUCK_TAG: string = tagsOf(BUCKETS)[STRUCK_BUCKET]!

export const STRUCK_SLOT: number = crc16(STRUCK_TAG) % SLOTS
